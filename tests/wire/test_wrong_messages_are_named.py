"""A wrong message raises one clear sentence that names the field; unknown fields are ignored."""

from __future__ import annotations

import copy
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from compilewatch.wire.codec import DecodeError, decode, deflate, inflate, loads
from compilewatch.wire.messages import Request

FULL = json.loads(
    (Path(__file__).parent.parent / "data" / "wire" / "v1" / "request-full.json").read_text()
)


def changed(path: str, value: Any) -> dict[str, Any]:
    data: dict[str, Any] = copy.deepcopy(FULL)
    *parents, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    spot: Any = data
    for step in parents:
        spot = spot[step]
    spot[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("v", True, "v: expected a whole number, got true or false"),
        ("v", 1.5, "v: expected a whole number, got a number"),
        ("instance/rank", "0", "instance.rank: expected a whole number, got text"),
        ("instance/simulated", 1, "instance.simulated: expected true or false, got a number"),
        ("instance/node", 7, "instance.node: expected text, got a number"),
        ("instance/model", None, "instance.model: expected text, got null"),
        ("reports/0/seq", [1], "reports[0].seq: expected a list of 2, got a list"),
        ("reports/0/window/1", float("inf"), "reports[0].window[1]: expected a finite number"),
        (
            "reports/0/regions/0/calls",
            1 << 63,
            "reports[0].regions[0].calls: the number does not fit into 64 bits",
        ),
        (
            "reports/0/regions/0/eager_by",
            [],
            "reports[0].regions[0].eager_by: expected an object, got a list",
        ),
        (
            "reports/0/regions/0/eager_by/limit",
            "x",
            "reports[0].regions[0].eager_by.limit: expected a whole number, got text",
        ),
        (
            "reports/0/gauges/devices/0",
            3,
            "reports[0].gauges.devices[0]: expected an object, got a number",
        ),
        ("reports/0/window/0", 10**400, "reports[0].window[0]: expected a finite number"),
    ],
)
def test_a_wrong_field_is_named(path: str, value: Any, sentence: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Request, changed(path, value))
    assert str(caught.value) == sentence


def test_a_missing_field_is_named() -> None:
    data = copy.deepcopy(FULL)
    del data["reports"][0]["compiles"][0]["outcome"]
    with pytest.raises(DecodeError, match=r"reports\[0\]\.compiles\[0\]\.outcome: is missing"):
        decode(Request, data)


def test_unknown_fields_are_ignored() -> None:
    data = changed("instance/from_the_future", {"a": [1]})
    assert decode(Request, data) == decode(Request, FULL)


@pytest.mark.parametrize("body", [b"", b"{", b"[1,]", b"\xff\xfe", b"[" * 100_000])
def test_invalid_json_is_reported(body: bytes) -> None:
    with pytest.raises(DecodeError, match="the body is not JSON"):
        loads(Request, body)


def test_gzip_is_read_once_and_within_bounds() -> None:
    body = json.dumps(FULL).encode()
    packed = deflate(body)
    assert inflate(packed) == body
    for wrong in (
        packed[:-9],
        packed + packed,
        packed + b"x",
        b"x" + packed,
        body,
        zlib.compress(body),
    ):
        with pytest.raises(DecodeError):
            inflate(wrong)
    with pytest.raises(DecodeError, match="larger than 1000 bytes"):
        inflate(packed, limit=1000)
    with pytest.raises(DecodeError, match="more than 100 times"):
        inflate(gzip.compress(b"0" * 3_000_000))
