"""The last 28 days compared with the 28 days before: matched groups, an interval from the variation
between weeks, and an explicit statement if no comparison is possible."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator

import pytest

from dashboard.ui.charts.period_comparison.compute import (
    PERIOD_DAYS,
    CallDay,
    CallGroup,
    compare_periods,
)
from dashboard.ui.charts.period_comparison.text import (
    PeriodCounts,
    PeriodSummary,
    direction,
    summarize_periods,
)

TODAY = 20_400
BEFORE, AFTER = (
    range(TODAY - 2 * PERIOD_DAYS, TODAY - PERIOD_DAYS),
    range(TODAY - PERIOD_DAYS, TODAY),
)
H100, H200 = (
    CallGroup("NVIDIA H100", 1, "forward", "2^8"),
    CallGroup("NVIDIA H200", 1, "forward", "2^8"),
)
NOTHING = PeriodCounts(0, 0, 0, None)


def day(
    cell: CallGroup,
    day: int,
    p50: float,
    *,
    calls: int = 1000,
    compiled: int | None = None,
    p99: float | None = None,
) -> CallDay:
    return CallDay(
        cell,
        day,
        calls,
        calls if compiled is None else compiled,
        calls,
        calls,
        p50 * calls,
        (p99 or 3 * p50) * calls,
    )


def days(
    cell: CallGroup, span: Iterable[int], p50: float | Callable[[int], float], **columns: int
) -> Iterator[CallDay]:
    """A level that alternates by 1% from day to day."""
    for number in span:
        yield day(
            cell,
            number,
            (p50(number) if callable(p50) else p50) * (1 + 0.01 * (-1) ** number),
            **columns,
        )


def summary(
    *parts: Iterable[CallDay], before: PeriodCounts = NOTHING, after: PeriodCounts = NOTHING
) -> PeriodSummary:
    return summarize_periods(
        compare_periods([row for part in parts for row in part], today=TODAY), before, after
    )


def test_a_faster_model_is_reported_with_its_change_interval_and_values() -> None:
    found = summary(days(H100, BEFORE, 0.0121), days(H100, AFTER, 0.0111))
    assert found.answer == "better"
    assert found.sentences[0].startswith("p50 of `forward` on NVIDIA H100 is 8.3% faster (")
    assert "12.1\u00a0ms → 11.1\u00a0ms" in found.sentences[0]


def test_a_slower_tail_with_a_faster_median_is_mixed() -> None:
    before, after = (
        days(H100, BEFORE, 0.0121),
        (day(H100, one, 0.0111, p99=0.06 + one % 2 * 0.001) for one in AFTER),
    )
    assert summary(before, after).answer == "mixed"


def test_more_calls_on_the_faster_gpu_are_not_a_faster_model() -> None:
    before = [*days(H100, BEFORE, 0.020, calls=900), *days(H200, BEFORE, 0.010, calls=100)]
    after = [*days(H100, AFTER, 0.020, calls=100), *days(H200, AFTER, 0.010, calls=900)]
    region = compare_periods(before + after, today=TODAY).regions[0]
    assert region.p50
    assert region.p50.change == pytest.approx(0, abs=1e-9)
    assert summary(before, after).answer == "same"


def test_calls_without_a_match_in_the_other_period_are_excluded_and_named() -> None:
    before, after = (
        days(H100, BEFORE, 0.02),
        [*days(H100, AFTER, 0.02, calls=800), *days(H200, AFTER, 0.01, calls=200)],
    )
    found = summary(before, after)
    assert found.answer == "same"
    assert "NVIDIA H200, shape 2^8 (new, 20%)" in found.compared


def test_a_different_traffic_mix_is_not_compared() -> None:
    before, after = (
        days(H100, BEFORE, 0.02),
        [*days(H100, AFTER, 0.02, calls=300), *days(H200, AFTER, 0.01, calls=700)],
    )
    found = summary(before, after)
    assert found.answer == "unknown"
    assert found.sentences[0].startswith(
        "Only 30% of the calls of `forward` have a match in both periods (70% of these days ran"
    )


@pytest.mark.parametrize("first", [TODAY - 41, TODAY - 20])
def test_a_short_history_states_when_the_comparison_is_available(first: int) -> None:
    found = summary(days(H100, range(first, TODAY), 0.02))
    assert found.answer == ("unknown" if first == TODAY - 41 else "early")
    assert "Not enough history: data starts " in found.sentences[0]
    if first == TODAY - 41:
        assert "possible from 9 Nov 2025 at the earliest" in found.sentences[0]


def test_no_calls_in_both_periods_and_no_calls_in_the_last_period() -> None:
    assert summary().sentences[0].startswith("No calls in the last 56 days.")
    assert summary(days(H100, BEFORE, 0.02)).sentences[0] == (
        "No call of `forward` was reported in the last 28 days, so there is nothing to compare."
    )


def test_a_renamed_region_is_new_and_not_faster() -> None:
    other = CallGroup("NVIDIA H100", 1, "decode", "2^8")
    found = summary(days(H100, BEFORE, 0.02), days(other, AFTER, 0.01))
    assert found.answer == "unknown"
    assert "`decode` has no calls in the previous 28 days" in found.sentences[0]


def test_a_jump_in_a_single_week_is_not_reported_as_a_change() -> None:
    after = days(H100, AFTER, lambda number: 0.03 if number >= TODAY - 7 else 0.02)
    assert summary(days(H100, BEFORE, 0.02), after).answer == "same"


def test_the_summary_includes_counts_and_the_share_of_compiled_calls() -> None:
    before, after = days(H100, BEFORE, 0.02, compiled=900), days(H100, AFTER, 0.02, compiled=998)
    found = summary(
        before, after, before=PeriodCounts(12, 5, 40, 48.0), after=PeriodCounts(9, 2, 3, 41.0)
    )
    assert found.answer == "better"
    assert found.sentences[1] == "Served compiled: 90% → 99.8% of calls."
    assert (
        found.sentences[2]
        == "2\u00a0ROLL BACK alerts instead of 5, with 12\u00a0deployments before and 9 since."
    )
    start = next(row for row in found.rows if row.name == "Cold start")
    assert (start.change, start.how) == (
        "",
        "median of 40\u00a0starts and of 3; too few to compare",
    )


def test_random_variation_between_weeks_is_rarely_reported_as_a_change() -> None:
    """Simulated: standard deviation of 4% between weeks and 2% between days. The target is 1 false
    change in 20; among 600, more than 45 would occur by chance in less than 1 in 300 runs."""
    noise, wrong = random.Random(7), 0
    for _ in range(600):
        weeks = [math.exp(noise.gauss(0, 0.04)) for _ in range(8)]
        rows = [
            day(H100, one, 0.02 * weeks[(one - BEFORE[0]) // 7] * math.exp(noise.gauss(0, 0.02)))
            for one in (*BEFORE, *AFTER)
        ]
        level = compare_periods(rows, today=TODAY).regions[0].p50
        assert level
        wrong += bool(direction(level))
    assert wrong <= 45


def test_calls_of_today_and_of_future_days_are_in_neither_period() -> None:
    rows = [*days(H100, BEFORE, 0.02), *days(H100, AFTER, 0.02)]
    assert compare_periods(
        [*rows, *days(H100, range(TODAY, TODAY + 400), 0.5)], today=TODAY
    ) == compare_periods(rows, today=TODAY)


def test_alerts_of_a_period_without_calls_are_not_zero() -> None:
    found = summary(days(H100, range(TODAY - 10, TODAY), 0.02), after=PeriodCounts(1, 2, 0, None))
    assert not [sentence for sentence in found.sentences if "ROLL BACK" in sentence]
    assert [(row.before, row.after) for row in found.rows if row.name == "ROLL BACK alerts"] == [
        ("–", "2")
    ]


def test_no_alert_in_either_period_is_stated_in_words() -> None:
    found = summary(
        days(H100, BEFORE, 0.02), days(H100, AFTER, 0.02), before=PeriodCounts(1, 0, 0, None)
    )
    assert (
        found.sentences[-1]
        == "No ROLL BACK alert in either period, with 1\u00a0deployment before and 0 since."
    )
