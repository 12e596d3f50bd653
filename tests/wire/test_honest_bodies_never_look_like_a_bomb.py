"""The dashboard always inflates a body that the agent compressed, however repetitive the body
is."""

from __future__ import annotations

import pytest
from compilewatch.wire.codec import dumps_request, inflate, loads
from compilewatch.wire.messages import (
    MAX_INFLATE_RATIO,
    MAX_WIRE_BYTES,
    Identity,
    Region,
    Report,
    Request,
)
from compilewatch.wire.sketch import Sketch


@pytest.mark.parametrize(("windows", "regions"), [(32, 5), (1, 256)])
def test_windows_of_a_fast_call_and_a_slow_one_arrive(windows: int, regions: int) -> None:
    reports = [
        Report(
            (seq, seq),
            (10.0 * seq, 10.0 * seq + 10.0),
            [Region(f"layer {n}", 2, latency=Sketch.of([1e-6, 10.0])) for n in range(regions)],
        )
        for seq in range(1, windows + 1)
    ]
    request = Request(1, 1.0, Identity("i" * 26, 1.0, "ranker", "1"), reports)
    packed = dumps_request(request)
    body = inflate(packed)
    assert loads(Request, body) == request
    assert len(body) <= MAX_INFLATE_RATIO * len(packed) and len(packed) <= MAX_WIRE_BYTES
    assert packed == dumps_request(request)
