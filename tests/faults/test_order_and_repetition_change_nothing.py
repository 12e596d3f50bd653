"""The same windows sent five times, shuffled among their next 64, and once more an hour late: the
dashboard holds the same data as in order."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import (
    VERSION,
    Compile,
    Finding,
    Gauges,
    Identity,
    Region,
    Report,
    Request,
)
from compilewatch.wire.sketch import Sketch

from tests.faults.line import Line
from tests.faults.proxy import REORDERED
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.flow.stack import answer_of, wait_for

COPIES = 5
CALLS = (
    "calls, errors, items, compiled, partial, eager_limit, unknown, sampled, covered, latency, "
    "warmup, latency_count, p50, p95, p99"
)
PROCESS = "windows, covered, compiles, recompiles, compile_seconds, graph_breaks, host_rss"
BY_SERIES = (
    " FROM {table} JOIN series ON series.id = series_id JOIN model_version ON model_version.id "
    "= series.version_id"
)
QUERIES = {
    "version hours": f"SELECT hour, region, {CALLS}" + BY_SERIES.format(table="version_hour"),
    "version minutes": f"SELECT minute, region, {CALLS}" + BY_SERIES.format(table="version_minute"),
    "region minutes": f"SELECT minute, region, {CALLS}" + BY_SERIES.format(table="region_minute"),
    "process minutes": f"SELECT minute, {PROCESS} FROM process_minute "
    "JOIN instance ON instance.id = "
    "process_minute.instance_id"
    " JOIN model_version ON model_version.id = instance.version_id",
}


def windows(seed: int, count: int) -> list[Report]:
    """Ten-second windows of the last minutes, with every kind of additive value."""
    chance, start = random.Random(seed), time.time() // 60 * 60 - count * 10.0 - 60.0
    made = []
    for seq in range(1, count + 1):
        at, calls = start + seq * 10.0, chance.randint(1, 40)
        latency = Sketch.of([chance.lognormvariate(-6, 1) for _ in range(calls)])
        region = Region(
            "step",
            calls,
            items=calls * 0.5,
            compiled=calls - 1,
            eager_by={"limit": 1},
            sampled=calls,
            latency=latency,
        )
        compiled = Compile(
            at - 1.0, f"{seq}/0", "recompile", "ok", frame="f", seconds={"total": chance.random()}
        )
        made.append(
            Report(
                (seq, seq),
                (at - 10.0, at),
                [region],
                [compiled],
                [Finding("graph_break", "print", "a.py:1", 2)],
            )
        )
        made[-1].gauges = Gauges(host_rss=chance.randint(1, 1 << 30))
    return made


def identity(version: str, letter: str) -> Identity:
    return Identity(letter * 26, time.time() - 7200.0, "order", version)


def send(line: Line, who: Identity, report: Report, late: float = 0.0) -> None:
    body = dumps(Request(VERSION, time.time() - late, who, [report]))
    # A busy server responds with a retry time, and an agent then resends the same bytes.
    wait_for(
        "the report is accepted",
        lambda: answer_of(line.stack.port, line.stack.key, body)[0] == 200,
        seconds=60,
    )


def rows(line: Line, query: str, version: str) -> list[tuple[Any, ...]]:
    return sorted(line.stack.rows(f"{query} WHERE model_version.name = '{version}'"), key=repr)


def alike(one: object, other: object) -> bool:
    """Equal; a sum of floats may differ in its last digits, which depend on the order of the
    summands."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-9)
    if isinstance(one, bytes) and isinstance(other, bytes):
        first, second = Sketch.unpack(one), Sketch.unpack(other)
        return dict(first.items()) == dict(second.items()) and first.sum == pytest.approx(
            second.sum, rel=1e-9
        )
    return one == other


def test_replayed_five_times_mixed_and_an_hour_late(
    line: Line, seed: int, add_result: AddResult
) -> None:
    count = sized(40, 400)
    given, chance = windows(seed, count), random.Random(seed)
    straight, mixed = identity(f"straight-{seed}", "s"), identity(f"mixed-{seed}", "m")
    for report in given:
        send(line, straight, report)
    order = sorted(given * COPIES, key=lambda report: report.seq[0] + chance.uniform(0, REORDERED))
    for report in order:
        send(line, mixed, report)
    for report in given:
        send(line, mixed, report, late=3600.0)
    wait_for("everything is folded", line.stack.folded, seconds=120)
    for name, query in QUERIES.items():
        one, other = rows(line, query, straight.version), rows(line, query, mixed.version)
        assert len(one) == len(other) > 0, name
        for first, second in zip(one, other, strict=True):
            assert all(alike(mine, its) for mine, its in zip(first, second, strict=True)), name
    senders = line.senders()
    assert senders[straight.id].ranges == senders[mixed.id].ranges == [(1, count)]
    add_result("14", runs=COPIES + 1, windows=count, requests=len(order) + count)
