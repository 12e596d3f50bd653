"""Guard lookups are counted in turns; the turns get shorter as the calls make more lookups per
second."""

from __future__ import annotations

from compilewatch.sources.dynamo.duty_cycle import (
    LOOKUP_SECONDS,
    MAX_COST_SHARE,
    MIN_LOOKUPS,
    DutyCycle,
)
from hypothesis import given
from hypothesis import strategies as st


def counted(turns: DutyCycle, start: int, seconds: int) -> int:
    """The number of seconds in which lookups are counted."""
    return sum(turns.should_count(float(now)) for now in range(start, start + seconds))


def test_after_a_compilation_all_lookups_are_counted_and_then_one_second_in_ten() -> None:
    turns = DutyCycle(0.0)
    assert (counted(turns, 0, 20), counted(turns, 20, 100)) == (20, 10)
    turns.restart_settling(120.0)
    assert counted(turns, 120, 20) == 20


def test_many_lookups_a_second_shorten_the_turn() -> None:
    stretches = []
    for lookups in (999, 1_000, 2_000, 4_000):
        turns = DutyCycle(0.0)
        turns.update_cost(lookups, 1.0)
        stretches.append(round(turns.compute_durations(1.0)[0], 1))
    assert stretches == [10.0, 4.5, 2.3, 1.1]


def test_a_turn_of_minimal_length_becomes_rarer() -> None:
    turns = DutyCycle(0.0)
    turns.update_cost(10_000, 1.0)
    assert counted(turns, 1, 100) in (4, 5)
    assert counted(turns, 101, 400) in (17, 18, 19)


def test_without_calls_the_cost_is_unknown() -> None:
    turns = DutyCycle(0.0)
    turns.update_cost(1_000_000, 0.0)
    assert turns.compute_durations(1.0) == (10.0, 10.0)


@given(st.integers(0, 2_000_000), st.floats(0, 100))
def test_the_cost_stays_within_its_share_unless_lookups_are_few(lookups: int, now: float) -> None:
    turns = DutyCycle(0.0)
    turns.update_cost(lookups, 1.0)
    counting, period = turns.compute_durations(now)
    assert (
        counting / period * lookups * LOOKUP_SECONDS
        <= max(MAX_COST_SHARE, MIN_LOOKUPS * LOOKUP_SECONDS) * 1.001
    )
