"""Guard lookups are counted in turns that shorten as there are more lookups in the calls' time."""

from __future__ import annotations

from compilewatch.sources.dynamo.duty_cycle import FEW_LOOKUPS, LOOKUP_SECONDS, SHARE, Turns
from hypothesis import given
from hypothesis import strategies as st


def counted(turns: Turns, start: int, seconds: int) -> int:
    """Of so many seconds, those in which lookups are counted."""
    return sum(turns.counts(float(now)) for now in range(start, start + seconds))


def test_after_a_compilation_all_is_counted_and_then_one_second_in_ten() -> None:
    turns = Turns(0.0)
    assert (counted(turns, 0, 20), counted(turns, 20, 100)) == (20, 10)
    turns.compiled(120.0)
    assert counted(turns, 120, 20) == 20


def test_many_lookups_a_second_shorten_the_stretch() -> None:
    stretches = []
    for lookups in (999, 1_000, 2_000, 4_000):
        turns = Turns(0.0)
        turns.looked_up(lookups, 1.0)
        stretches.append(round(turns.stretch(1.0)[0], 1))
    assert stretches == [10.0, 4.5, 2.3, 1.1]


def test_a_stretch_that_cannot_be_shorter_comes_more_seldom() -> None:
    turns = Turns(0.0)
    turns.looked_up(10_000, 1.0)
    assert counted(turns, 1, 100) in (4, 5)
    assert counted(turns, 101, 400) in (17, 18, 19)


def test_where_no_call_was_seen_nothing_is_known_of_the_cost() -> None:
    turns = Turns(0.0)
    turns.looked_up(1_000_000, 0.0)
    assert turns.stretch(1.0) == (10.0, 10.0)


@given(st.integers(0, 2_000_000), st.floats(0, 100))
def test_the_cost_stays_inside_its_share_where_lookups_are_not_few(lookups: int, now: float) -> None:
    turns = Turns(0.0)
    turns.looked_up(lookups, 1.0)
    counting, period = turns.stretch(now)
    assert counting / period * lookups * LOOKUP_SECONDS <= max(SHARE, FEW_LOOKUPS * LOOKUP_SECONDS) * 1.001
