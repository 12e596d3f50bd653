"""Pure fold: any order and any grouping of the same reports gives the same facts."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import Any

from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import (
    CACHE_ANSWERS,
    COMPILE_KINDS,
    EAGER_CAUSES,
    FACT_KINDS,
    FINDING_KINDS,
    OUTCOMES,
    Compile,
    Device,
    Fact,
    Finding,
    Gauges,
    Identity,
    Losses,
    Region,
    Report,
)
from compilewatch.wire.sketch import Sketch
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.fleet.fold.decode import EncodedReport
from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.fold_report import row_fold

BASE = 29_833_333 * 60.0
# Multiples of 1/64 of a moderate size are added without rounding, so that tests can require exact
# equality.
exact = st.integers(0, 64 * 1000).map(lambda n: n / 64)
count = st.integers(0, 1000)
received = st.sampled_from([None, BASE + 100, BASE + 20_000])
sketches = st.none() | st.lists(exact, max_size=6).map(Sketch.of)


def regions() -> st.SearchStrategy[Region]:
    return st.builds(
        Region,
        name=st.sampled_from(["forward", "encode"]),
        calls=count,
        bucket=st.sampled_from(["", "2^12"]),
        errors=count,
        items=st.none() | exact,
        compiled=count,
        eager_by=st.dictionaries(st.sampled_from([*EAGER_CAUSES, "strange"]), count, max_size=3),
        unknown=count,
        latency=sketches,
        gpu=sketches,
        warmup=sketches,
    )


def compiles(at: float) -> st.SearchStrategy[Compile]:
    return st.builds(
        Compile,
        at=exact.map(lambda n: at + n),
        id=st.just("0/1"),
        kind=st.sampled_from(COMPILE_KINDS),
        outcome=st.sampled_from(OUTCOMES),
        seconds=st.dictionaries(st.sampled_from(["total", "dynamo"]), exact),
        cache=st.dictionaries(st.sampled_from(["fx", "aot"]), st.sampled_from(CACHE_ANSWERS)),
        in_request=st.booleans(),
    )


@st.composite
def reports(draw: st.DrawFn, seq: int) -> Report:
    start = BASE + draw(st.integers(0, 200)) * 30.0
    fact = st.builds(
        Fact,
        st.sampled_from(FACT_KINDS),
        exact.map(lambda n: start + n),
        st.fixed_dictionaries({"frame": st.sampled_from("ab")}),
    )
    said = st.fixed_dictionaries(
        {
            "name": st.sampled_from(["cold start", "weights loaded"]),
            "total": exact,
            "until": st.sampled_from(["first call", "ready"]),
            "stages": st.dictionaries(
                st.sampled_from(["compile", "import torch"]), st.lists(exact, max_size=3)
            ),
        }
    )
    start_told = st.builds(Fact, st.just("mark"), exact.map(lambda n: start + n), said)
    finding = st.builds(
        Finding,
        st.sampled_from(FINDING_KINDS),
        st.sampled_from(["break at 0x7f01", "break at 0x7f02"]),
        st.just("m.py:1"),
        count,
    )
    device = st.builds(Device, st.just(0), st.none() | count, st.none() | count, st.none() | count)
    return Report(
        seq=(seq, seq),
        window=(start, start + draw(st.sampled_from([10.0, 60.0, 600.0]))),
        regions=draw(st.lists(regions(), max_size=3)),
        compiles=draw(st.lists(compiles(start), max_size=2)),
        findings=draw(st.lists(finding, max_size=2)),
        gauges=draw(st.builds(Gauges, st.lists(device, max_size=2), st.none() | count)),
        facts=draw(st.lists(fact | start_told, max_size=3)),
        losses=Losses(draw(count), 0, 0, draw(count)),
    )


@st.composite
def rows(draw: st.DrawFn) -> list[EncodedReport]:
    found = []
    for number in range(draw(st.integers(1, 6))):
        instance = draw(st.sampled_from("ab")) * 26
        who = Identity(
            instance,
            BASE,
            "ranker",
            draw(st.sampled_from("12")),
            gpu="NVIDIA H200",
            simulated=draw(st.booleans()),
        )
        found.append(
            EncodedReport(
                number,
                1,
                instance,
                draw(st.sampled_from([0.0, 90.0])),
                dumps(who),
                dumps(draw(reports(number + 1))),
                draw(received),
            )
        )
    return found


def folded(found: list[EncodedReport]) -> Facts:
    facts = Facts()
    for row in found:
        facts.merge(row_fold(row))
    return facts


def plain(facts: Facts) -> dict[str, Any]:
    """The facts as dictionaries, each sketch as its filled bins: the capacity for empty bins is
    irrelevant."""

    def tidy(value: Any) -> Any:
        if isinstance(value, Sketch):
            return value.count, value.sum, value.min, value.max, value.zero, list(value.items())
        if isinstance(value, dict):
            return {key: tidy(item) for key, item in value.items()}
        return (
            {name: tidy(getattr(value, name)) for name in value.__slots__}
            if hasattr(value, "__slots__")
            else value
        )

    return {name: tidy(getattr(facts, name)) for name in asdict(Facts())}


@settings(max_examples=150, deadline=None)
@given(rows(), st.randoms(use_true_random=False))
def test_any_order_gives_the_same_facts(found: list[EncodedReport], rnd: random.Random) -> None:
    shuffled = list(found)
    rnd.shuffle(shuffled)
    assert plain(folded(shuffled)) == plain(folded(found))


@settings(max_examples=150, deadline=None)
@given(rows(), st.integers(0, 6), st.integers(0, 6))
def test_any_grouping_gives_the_same_facts(
    found: list[EncodedReport], first: int, second: int
) -> None:
    low, high = sorted((first, second))
    parts = [folded(found[:low]), folded(found[low:high]), folded(found[high:])]
    left, right = Facts(), folded(found[low:high])
    for part in parts:
        left.merge(part)
    right.merge(folded(found[high:]))
    whole = folded(found[:low])
    whole.merge(right)
    assert plain(left) == plain(whole) == plain(folded(found))


@settings(max_examples=100, deadline=None)
@given(rows())
def test_nothing_is_lost_between_reports_and_facts(found: list[EncodedReport]) -> None:
    from dashboard.fleet.fold.decode import decode_report

    facts = folded(found)
    sent = [region for row in found for region in decode_report(row).regions]
    kept = [*facts.minutes.values(), *facts.hours.values()]
    assert sum(region.calls for region in sent) == sum(calls.calls for calls in kept)
    assert sum(sum(region.eager_by.values()) + region.unknown for region in sent) == sum(
        sum(calls.eager) + calls.unknown for calls in kept
    )
    assert sum(region.latency.count for region in sent if region.latency) == sum(
        calls.latency.count for calls in kept if calls.latency
    )
