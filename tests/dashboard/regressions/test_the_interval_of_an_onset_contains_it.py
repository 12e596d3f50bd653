"""Onset as a change point: the interval contains the minute of the change in 95% of simulated
regressions, is narrow for steep changes, and is absent for a change of the first minute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from dashboard.regressions.judge.onset import (
    DROPPED_MINUTES,
    MAX_MINUTES,
    Entries,
    History,
    Onset,
    find_count_onset,
    find_level_onset,
)

Floats = NDArray[np.float64]
FIRST = 29_000_000
"""The first minute of each series."""
MEMORY, MINUTE_SD = 0.97, 0.03
"""Noise of an instance as in `tests/bench/fleet_sim.py`."""
CALL_SD = 0.05
"""Noise of the calls of one instance in a minute."""
WORLDS = [
    (instances, shift, minutes)
    for instances in (1, 4, 16)
    for shift in (0.1, 0.2, 0.5, 1.0)
    for minutes in (60, 240)
]


def noise(rng: np.random.Generator, minutes: int, instances: int) -> Floats:
    shocks = rng.standard_normal(minutes + 400) * MINUTE_SD * (1 - MEMORY**2) ** 0.5
    slow: Floats = lfilter([1.0], [1.0, -MEMORY], shocks)[400:]
    each = slow + CALL_SD * rng.standard_normal(minutes)
    return np.asarray(each / instances**0.5, float)


def level(
    rng: np.random.Generator, minutes: int, instances: int, at: int, shift: float, rise: int = 1
) -> Floats:
    grown = np.clip((np.arange(minutes) - at + 1) / rise, 0.0, 1.0)
    return noise(rng, minutes, instances) + np.log1p(shift) * grown


def entries(sums: Iterable[float], weights: Iterable[float] = ()) -> Entries:
    total, weighted = (np.asarray(list(each), float) for each in (sums, weights))
    minutes = FIRST + np.arange(len(total), dtype=float)
    return Entries(minutes, weighted if len(weighted) else np.ones(len(total)), total)


def contains(onset: Onset | None, minute: int) -> bool:
    return onset is not None and onset.earliest <= FIRST + minute <= onset.latest


def width(onset: Onset) -> int:
    return onset.latest - onset.earliest + 1


def regressions() -> Iterator[tuple[int, float, int, Onset | None]]:
    rng = np.random.default_rng(128)
    for instances, shift, minutes in WORLDS:
        for _ in range(10):
            at = int(rng.integers(10, minutes - 15))
            yield (
                instances,
                shift,
                at,
                find_level_onset(entries(level(rng, minutes, instances, at, shift))),
            )


def test_the_interval_covers_19_of_20_regressions_and_narrows_with_their_size() -> None:
    found = list(regressions())
    covered = [contains(onset, at) for _, _, at, onset in found]
    assert len(covered) == 240 and sum(covered) >= 0.95 * len(covered)
    widths = {
        shift: median(width(one) for _, size, _, one in found if size == shift and one)
        for shift in (0.1, 0.2, 0.5, 1.0)
    }
    assert widths[0.1] >= widths[0.2] >= widths[0.5] >= widths[1.0]
    assert widths[1.0] <= 3


@pytest.mark.parametrize("instances", [1, 6])
def test_a_change_to_five_times_is_dated_to_three_minutes(instances: int) -> None:
    rng = np.random.default_rng(5)
    for at in (9, 30, 77, 100, 113):
        onset = find_level_onset(entries(level(rng, 120, instances, at, 4.0)))
        assert onset is not None and contains(onset, at) and width(onset) <= 3
        assert onset.best == FIRST + at


def test_a_slow_rise_has_a_wide_interval_with_its_beginning() -> None:
    rng = np.random.default_rng(6)
    found = [find_level_onset(entries(level(rng, 240, 2, 80, 0.5, rise=60))) for _ in range(20)]
    assert sum(contains(onset, 80) for onset in found) >= 19
    assert all(10 <= width(onset) <= 120 for onset in found if onset)


def test_a_rise_in_steps_begins_with_its_first_step() -> None:
    rng = np.random.default_rng(14)
    for _ in range(10):
        values = level(rng, 240, 2, 100, 0.2)
        values[140:] += 0.25
        assert contains(find_level_onset(entries(values)), 100)


def test_a_change_of_the_first_minute_has_no_onset() -> None:
    rng = np.random.default_rng(7)
    found = [
        find_level_onset(entries(level(rng, minutes, instances, 0, shift)))
        for minutes in (20, 120, 480)
        for instances in (1, 4)
        for shift in (0.2, 1.0, 4.0)
        for _ in range(4)
    ]
    assert sum(onset is not None for onset in found) <= 0.05 * len(found)


def test_one_slow_minute_is_no_onset() -> None:
    rng = np.random.default_rng(8)
    for place in (30, 31, 60):
        values = level(rng, 180, 4, 120, 0.3)
        values[place] += 2.0
        onset = find_level_onset(entries(values))
        assert contains(onset, 120) and onset is not None and width(onset) < 20


def test_wide_bins_are_covered_as_a_whole() -> None:
    values = level(np.random.default_rng(9), 40, 4, 25, 0.5)
    spans = np.full(40, 15.0)
    ends = FIRST + 15.0 * np.arange(1, 41)
    onset = find_level_onset(Entries(ends, spans, values * spans))
    assert onset is not None
    assert onset.earliest <= FIRST + 25 * 15 + 1 <= onset.best + 14 <= onset.latest


COUNTS = [(0.0, 0.02, 100), (0.0, 0.5, 20), (0.01, 0.03, 300), (0.002, 0.01, 2000)]


@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_the_interval_of_a_count_covers_its_minute(spread: float) -> None:
    rng = np.random.default_rng(10)
    covered = []
    for before, after, calls in COUNTS:
        for _ in range(15):
            at = int(rng.integers(10, 230))
            called = rng.poisson(calls, 240)
            shares = np.where(np.arange(240) < at, before, after)
            shares = shares * np.exp(spread * rng.standard_normal(240) - spread**2 / 2)
            failed = rng.binomial(called, np.minimum(shares, 1.0))
            covered.append(contains(find_count_onset(entries(failed, called)), at))
    assert sum(covered) >= 0.95 * len(covered)


def test_half_of_all_calls_failing_is_dated_to_three_minutes() -> None:
    rng = np.random.default_rng(11)
    called = rng.poisson(60, 90)
    failed = rng.binomial(called, np.where(np.arange(90) < 70, 0.001, 0.5))
    onset = find_count_onset(entries(failed, called))
    assert onset is not None and contains(onset, 70) and width(onset) <= 3


def test_a_share_of_the_first_minute_has_no_onset() -> None:
    rng = np.random.default_rng(12)
    for calls, share in ((20, 0.5), (300, 0.05), (5000, 0.01)):
        called = rng.poisson(calls, 200)
        assert find_count_onset(entries(rng.binomial(called, share), called)) is None


def history(values: Iterable[float]) -> History:
    found = History(find_level_onset)
    for place, value in enumerate(values):
        found.add(FIRST + place, 1.0, value)
    return found


def test_an_onset_depends_on_the_entries_and_not_on_earlier_questions() -> None:
    values = level(np.random.default_rng(13), 200, 4, 120, 0.3)
    asked = History(find_level_onset)
    for place, value in enumerate(values):
        asked.add(FIRST + place, 1.0, value)
        if place > 125:
            asked.find_onset(FIRST + 125)
    onset = history(values).find_onset(FIRST + 125)
    assert onset == asked.find_onset(FIRST + 125) and contains(onset, 120)


def test_a_history_keeps_three_days_and_states_what_it_dropped() -> None:
    values = np.zeros(MAX_MINUTES + DROPPED_MINUTES + 1)
    short, long = history(values[:MAX_MINUTES]), history(values)
    assert (len(short.minutes), short.truncated) == (MAX_MINUTES, False)
    assert long.truncated and MAX_MINUTES <= len(long.minutes) <= MAX_MINUTES + 1
    assert long.minutes[-1] == FIRST + len(values) - 1


def test_a_series_of_few_entries_has_no_onset() -> None:
    assert find_level_onset(entries([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])) is None
    assert find_count_onset(entries([0, 0, 5], [10, 10, 10])) is None
    assert History(find_level_onset).find_onset(FIRST) is None
