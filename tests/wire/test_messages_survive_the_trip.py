"""An encoded message comes back equal, through JSON and gzip, with any content."""

from __future__ import annotations

import json

from compilewatch.wire.ack import Ack
from compilewatch.wire.codec import decode, dumps, dumps_request, encode, inflate, loads
from compilewatch.wire.errors import ERROR_CODES, Error
from compilewatch.wire.messages import Request
from hypothesis import HealthCheck, given, settings

from tests.wire.messages import acks, requests

relaxed = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@relaxed
@given(requests)
def test_a_request_comes_back_equal(request: Request) -> None:
    assert loads(Request, inflate(dumps_request(request))) == request


@relaxed
@given(requests)
def test_encoding_what_was_decoded_gives_the_same_bytes(request: Request) -> None:
    body = dumps(request)
    assert dumps(loads(Request, body)) == body


@relaxed
@given(acks)
def test_an_answer_comes_back_equal(ack: Ack) -> None:
    assert loads(Ack, dumps(ack)) == ack


def test_every_error_comes_back_equal_and_carries_the_marker() -> None:
    for code in ERROR_CODES:
        data = encode(Error(code, "a detail"))
        assert data["cw"] == 1
        assert decode(Error, json.loads(json.dumps(data))) == Error(code, "a detail")
