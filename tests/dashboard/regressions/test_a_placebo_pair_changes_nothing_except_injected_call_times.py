"""Placebo pairs: two halves of one healthy version give no alert, and an injected change of call
times is found at its size."""

from __future__ import annotations

import random
from dataclasses import fields, replace

import pytest

from dashboard.regressions.judge import InstanceMinute, InstanceProcessMinute
from dashboard.regressions.judge.level_reading import GROSS_SINGLE
from dashboard.regressions.judge.placebo import (
    SIZES,
    PlaceboPeriod,
    PlaceboTally,
    binomial_interval,
    find_detected_size,
    judge_pair,
    multiply_call_times,
    split_units,
    tally_period,
)
from tests.dashboard.regressions.fleets import LEARNED, ROW, every_minute, instance

MINUTES = 180


def rows(count: int = 6, minutes: int = MINUTES) -> list[InstanceMinute]:
    """Healthy instances whose levels differ by 1% from each other."""
    each = [instance(f"b{n}", p50=0.01 * (1 + n / 100), p99=0.02) for n in range(count)]
    return list(every_minute(each, minutes))


def period(count: int = 6) -> PlaceboPeriod:
    return PlaceboPeriod(0, MINUTES, rows(count))


def test_four_units_have_three_splits() -> None:
    found = split_units(rows(4, 1), splits=10, seed="1")
    assert sorted(map(len, found)) == [2, 2, 2]
    assert len({frozenset((one, frozenset({"b0", "b1", "b2", "b3"}) - one)) for one in found}) == 3


def test_each_stratum_is_split_in_half() -> None:
    mixed = [
        *rows(4, 1),
        *(replace(row, unit=f"a{row.unit}", stratum="A100") for row in rows(4, 1)),
    ]
    for candidate in split_units(mixed, splits=5, seed="1"):
        assert sum(str(unit).startswith("a") for unit in candidate) == 2
        assert len(candidate) == 4


def test_splits_depend_on_the_seed_and_not_on_the_order_of_rows() -> None:
    kept = rows(12, 1)
    shuffled = random.Random(5).sample(kept, len(kept))
    assert split_units(kept, splits=3, seed="1") == split_units(shuffled, splits=3, seed="1")
    assert split_units(kept, splits=3, seed="1") != split_units(kept, splits=3, seed="2")


def test_a_single_unit_has_no_split() -> None:
    assert split_units(rows(1, 1), splits=3, seed="1") == []


def test_a_job_is_one_unit_of_a_split() -> None:
    ranks = [replace(row, unit="job") if row.unit in ("b0", "b1") else row for row in rows(4, 1)]
    assert len(split_units(ranks, splits=10, seed="1")) == 2


def test_an_injected_change_multiplies_call_times_only() -> None:
    row = replace(ROW, p50=1.0, p99=2.0, gpu_p50=None, latency_sum=3.0, call_seconds=4.0)
    changed = multiply_call_times(row, 1.5)
    different = {
        one.name: getattr(changed, one.name)
        for one in fields(row)
        if getattr(changed, one.name) != getattr(row, one.name)
    }
    assert different == {"p50": 1.5, "p99": 3.0, "latency_sum": 4.5, "call_seconds": 6.0}


def test_the_wall_time_of_an_engine_is_not_lengthened() -> None:
    engine = replace(ROW, latency_sum=60.0, bounds=(0.1, 0.2))
    assert multiply_call_times(engine, 2.0).latency_sum == 60.0


def test_healthy_halves_raise_no_alert_and_a_large_change_does() -> None:
    found = period()
    tally = tally_period(found, LEARNED, splits=4, seed="1")
    assert (tally.pairs, tally.roll_backs, tally.alerts) == (4, 0, 0)
    [size] = tally.sizes
    assert size is not None
    [candidate] = split_units(found.rows, splits=1, seed="1")
    assert "roll_back" in judge_pair(found, candidate, LEARNED, size)
    smaller = [one for one in SIZES if one < size]
    assert "roll_back" not in judge_pair(found, candidate, LEARNED, smaller[-1])


def test_two_units_detect_no_change() -> None:
    [candidate] = split_units(rows(2), splits=1, seed="1")
    minutes = GROSS_SINGLE[1] - 1
    few = PlaceboPeriod(0, minutes, rows(2, minutes))
    assert find_detected_size(few, candidate, LEARNED) is None
    assert judge_pair(few, candidate, LEARNED) == {"not_enough_data"}


def test_two_units_for_18_minutes_detect_a_gross_change_only() -> None:
    [candidate] = split_units(rows(2), splits=1, seed="1")
    few = PlaceboPeriod(0, 18, rows(2, 18))
    gross = min(size for size in SIZES if size >= LEARNED.gross_change)
    assert find_detected_size(few, candidate, LEARNED) == gross
    assert judge_pair(few, candidate, LEARNED) == {"not_enough_data"}


def test_process_states_are_judged_with_their_unit() -> None:
    def state(name: str, minute: int) -> InstanceProcessMinute:
        memory = 2_000_000_000 if name in candidate else 1_000_000_000
        return InstanceProcessMinute(
            name, name, "baseline", "H100", minute, -60, gpu_peak=memory, gpu_allocated=memory
        )

    healthy = period(8)
    [candidate] = split_units(healthy.rows, splits=1, seed="1")
    states = [state(f"b{n}", minute) for n in range(8) for minute in range(MINUTES)]
    found = replace(healthy, states=states)
    assert "roll_back" in judge_pair(found, candidate, LEARNED)
    assert "roll_back" not in judge_pair(healthy, candidate, LEARNED)


@pytest.mark.parametrize(
    ("count", "whole", "low", "high"),
    [(0, 240, 0.0, 0.0124), (1, 240, 0.00011, 0.02300), (240, 240, 0.9876, 1.0), (0, 0, 0.0, 1.0)],
)
def test_the_interval_is_exact(count: int, whole: int, low: float, high: float) -> None:
    assert binomial_interval(count, whole) == pytest.approx((low, high), rel=0.01, abs=1e-5)


def test_the_detectable_change_is_detected_in_nine_of_ten_pairs() -> None:
    assert PlaceboTally(sizes=[0.05] * 9 + [0.5]).detectable == 0.05
    assert PlaceboTally(sizes=[0.05] * 8 + [0.2, 0.5]).detectable == 0.2
    assert PlaceboTally(sizes=[0.05] * 8 + [None, None]).detectable is None
    assert PlaceboTally().detectable is None


def test_tallies_add_up_and_are_stored_as_json() -> None:
    total = PlaceboTally(3, 1, 2, 0, [0.1])
    total.add(PlaceboTally(1, 0, 0, 1, [None]))
    assert PlaceboTally(**total.as_dict()) == PlaceboTally(4, 1, 2, 1, [0.1, None])
