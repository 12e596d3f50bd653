"""Histogram buckets of an engine: levels less than a bucket apart give neither a finding nor
HEALTHY."""

from __future__ import annotations

from math import log

import pytest

from dashboard.regressions.judge import judge
from dashboard.regressions.judge.buckets import separates
from dashboard.regressions.judge.result import Outcome
from dashboard.regressions.judge.text.verdict import verdict_sentence
from tests.dashboard.regressions.fleets import every_minute, instance

OWN = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, float("inf"))
FINE = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, float("inf"))


def outcome(
    before: float | None, after: float | None, bounds: tuple[float, ...] | None, minutes: int = 120
) -> Outcome:
    rows = [instance(f"b{n}", p50=before, p99=before, bounds=bounds) for n in range(3)]
    rows += [instance(f"c{n}", p50=after, p99=after, bounds=bounds) for n in range(3)]
    return judge(every_minute(rows, minutes), now_minute=minutes, deployed_minute=0)


CLOSE = {
    "within one bucket": (0.55, 0.75, OWN),
    "over a bound, and less than a bucket apart": (0.45, 0.55, OWN),
    "both below the first bound": (None, None, OWN),
    "from below the first bound": (None, 0.45, OWN),
    "of buckets that are not known": (0.4, 4.0, ()),
    "beyond the last bound": (12.0, 30.0, OWN),
    "within one bucket of the finer histogram": (0.11, 0.22, FINE),
}


@pytest.mark.parametrize(("before", "after", "bounds"), CLOSE.values(), ids=CLOSE)
def test_levels_that_buckets_cannot_separate_are_not_enough_data(
    before: float | None, after: float | None, bounds: tuple[float, ...]
) -> None:
    found = outcome(before, after, bounds)
    assert (found.verdict, found.reason) == ("not_enough_data", "bucket_too_wide")
    [p50] = [row for row in found.evidence if row.metric == "p50"]
    assert (p50.label, p50.reason, p50.drives) == ("NOT ENOUGH DATA", "bucket_too_wide", False)
    assert (p50.baseline, p50.candidate, p50.change, p50.low, p50.high, p50.bound, p50.dots) == (
        None,
    ) * 6 + ((),)
    said = verdict_sentence(found, candidate="v2", baseline="v1", say_minute=str)
    assert "histogram buckets are wider than the difference" in said


FAR = {
    "two buckets up": (0.4, 1.2, OWN),
    "far up": (0.4, 6.0, OWN),
    "from below the first bound to far above it": (None, 2.2, OWN),
    "in the finer histogram": (0.03, 0.09, FINE),
}


@pytest.mark.parametrize(("before", "after", "bounds"), FAR.values(), ids=FAR)
def test_levels_more_than_a_bucket_apart_are_found(
    before: float | None, after: float, bounds: tuple[float, ...]
) -> None:
    found = outcome(before, after, bounds)
    assert found.verdict == "roll_back"
    assert {row.metric for row in found.evidence if row.drives} >= {"p50"}


def test_the_same_latencies_measured_by_an_agent_are_evaluated() -> None:
    assert outcome(0.55, 0.75, None).verdict == "roll_back"
    assert outcome(0.55, 0.55, None).verdict == "healthy"


@pytest.mark.parametrize("bounds", [OWN, None], ids=["of the engine too", "of the agent"])
def test_a_level_within_its_bucket_hides_no_other(bounds: tuple[float, ...] | None) -> None:
    """The A100 did not become slower, or its buckets do not show it."""
    quiet = [instance(name, stratum="A100", p50=0.4, p99=0.4, bounds=OWN) for name in ("b9", "c9")]
    rows = [instance(f"b{n}", stratum="H100", p50=0.4, p99=0.4, bounds=bounds) for n in range(6)]
    rows += [instance(f"c{n}", stratum="H100", p50=2.2, p99=2.2, bounds=bounds) for n in range(6)]
    found = judge(every_minute([*rows, *quiet], 120), now_minute=120, deployed_minute=0)
    assert found.verdict == "roll_back"
    assert {row.metric for row in found.evidence if row.drives} >= {"p50"}


def test_slow_minutes_are_not_compared_alone() -> None:
    """A minute below the first bound has no p50: without these minutes, only a busy hour of both
    versions would count."""
    quiet = [instance(name, p50=None, p99=0.4, bounds=OWN) for name in ("b0", "b1", "c0", "c1")]
    busy = [
        instance(name, p50=0.4 if name < "c" else 0.9, p99=2.0, bounds=OWN)
        for name in ("b0", "b1", "c0", "c1")
    ]
    rows = [*every_minute(quiet, 110), *every_minute(busy, 10, start=110)]
    assert judge(rows, now_minute=120, deployed_minute=0).verdict == "not_enough_data"


def test_a_version_does_not_drift_inside_a_bucket() -> None:
    day, bounds = 1440, OWN
    early = [instance(f"c{n}", p50=0.55, p99=0.55, bounds=bounds) for n in range(3)]
    late = [instance(f"c{n}", p50=0.75, p99=0.75, bounds=bounds) for n in range(3)]
    measured = [instance(f"c{n}", p50=0.75, p99=0.75) for n in range(3)]
    plain = [instance(f"c{n}", p50=0.55, p99=0.55) for n in range(3)]
    counted = judge(
        [*every_minute(early, day), *every_minute(late, 600, start=day)],
        now_minute=day + 600,
        deployed_minute=0,
    )
    known = judge(
        [*every_minute(plain, day), *every_minute(measured, 600, start=day)],
        now_minute=day + 600,
        deployed_minute=0,
    )
    assert not counted.drift and known.drift


@pytest.mark.parametrize(
    ("base", "candidate", "apart"),
    [
        (0.4, 0.4, False),
        (0.31, 0.49, False),
        (0.49, 0.52, False),
        (0.31, 0.81, True),
        (0.81, 0.31, True),
        (0.2, 5.0, True),
        (5.0, 0.2, True),
        (0.2, 0.29, False),
        (12.0, 30.0, False),
    ],
)
def test_only_buckets_separate_two_levels(base: float, candidate: float, apart: bool) -> None:
    assert separates(log(base), log(candidate), OWN) is apart
