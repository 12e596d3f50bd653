"""Builders of wire requests: steady reports unless the arguments change them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from compilewatch.wire.messages import Device, Gauges, Identity, Region, Report, Request
from compilewatch.wire.sketch import Sketch

Change = Callable[[Report], None]


def instance_id(number: int = 0) -> str:
    """A well-formed id of an instance."""
    return f"{number:026d}"


def region_make(
    *,
    name: str = "forward",
    calls: int = 100,
    p50: float = 0.01,
    bucket: str = "2^12",
    seed: int = 0,
    **fields: Any,
) -> Region:
    """A region whose calls were all compiled and took about `p50` seconds."""
    rnd = random.Random(seed)
    fields.setdefault("compiled", calls)
    fields.setdefault("latency", Sketch.of(p50 * rnd.lognormvariate(0, 0.1) for _ in range(calls)))
    return Region(
        name=name, calls=calls, bucket=bucket, sampled=calls, items=float(calls * 8), **fields
    )


def report_make(
    *,
    seq: int | tuple[int, int] = 1,
    window: tuple[float, float],
    regions: list[Region] | None = None,
    **fields: Any,
) -> Report:
    """A report with one steady region and one GPU."""
    pair = (seq, seq) if isinstance(seq, int) else seq
    gauges = Gauges(
        devices=[
            Device(index=0, allocated=1 << 30, peak=2 << 30, reserved=3 << 30, utilisation=0.5)
        ],
        host_rss=1 << 30,
    )
    fields.setdefault("gauges", gauges)
    return Report(
        seq=pair,
        window=window,
        regions=[region_make(seed=pair[0])] if regions is None else regions,
        **fields,
    )


def request_make(
    *,
    model: str = "ranker",
    version: str = "1",
    minutes: int = 1,
    end: float,
    instance: int = 0,
    first_seq: int = 1,
    p50: float = 0.01,
    window: float = 60.0,
    change: Change | None = None,
    **identity: Any,
) -> Request:
    """One report of `window` seconds per minute, the last ending at `end`; `change` is called with
    each report before it is sent."""
    identity.setdefault("gpu", "NVIDIA H200")
    who = Identity(
        id=instance_id(instance),
        started=end - minutes * 60 - 600,
        model=model,
        version=version,
        **identity,
    )
    reports = []
    for number in range(minutes):
        stop = end - (minutes - 1 - number) * 60
        report = report_make(
            seq=first_seq + number,
            window=(stop - window, stop),
            regions=[region_make(p50=p50, seed=instance * 1000 + number)],
        )
        if change is not None:
            change(report)
        reports.append(report)
    return Request(v=1, sent=end, instance=who, reports=reports)
