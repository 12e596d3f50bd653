"""In any order of ranges, every number is counted once: as acknowledged, as expected, or as
lost."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.ingest.sequence_ranges import (
    COVERED,
    GAP_CLOSED,
    MAX_RANGES,
    NEW,
    PARTIAL_OVERLAP,
    Coverage,
)

ranges = st.tuples(st.integers(1, 300), st.integers(0, 12)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)


@given(st.lists(ranges, max_size=80))
def test_a_range_is_new_if_none_of_its_numbers_was_seen(arrivals: list[tuple[int, int]]) -> None:
    coverage, seen = Coverage(), set[int]()
    for first, last in arrivals:
        numbers = set(range(first, last + 1))
        place = coverage.place((first, last))
        assert place == (
            NEW if not numbers & seen else COVERED if numbers <= seen else PARTIAL_OVERLAP
        )
        if place == NEW:
            coverage.add((first, last))
            seen |= numbers
    assert {number for first, last in coverage.ranges for number in range(first, last + 1)} == seen
    assert all(
        after[0] - before[1] > 1
        for before, after in zip(coverage.ranges, coverage.ranges[1:], strict=False)
    )
    assert coverage.next_seq == max(seen, default=0) + 1
    assert coverage.open_gaps == max(seen, default=0) - len(seen)
    assert coverage.missing == 0 and coverage.closed == []


@given(st.permutations(range(1, 61)))
def test_all_numbers_in_any_order_make_one_range(order: list[int]) -> None:
    coverage = Coverage()
    for number in order:
        assert coverage.place((number, number)) == NEW
        coverage.add((number, number))
    assert coverage.ranges == [(1, 60)] and coverage.missing == 0


@given(st.integers(0, 1 << 30))
def test_with_many_gaps_every_number_is_counted_once(seed: int) -> None:
    rnd, coverage, seen = random.Random(seed), Coverage(), set[int]()
    arrivals = list(range(1, 400, 2)) + rnd.sample(range(2, 400, 2), 60)
    rnd.shuffle(arrivals)
    refused = set[int]()
    for number in arrivals:
        place = coverage.place((number, number))
        if place == NEW:
            coverage.add((number, number))
            seen.add(number)
        else:
            assert place == GAP_CLOSED and number not in seen
            refused.add(number)
        assert len(coverage.ranges) <= MAX_RANGES
    assert seen | refused == set(arrivals)
    highest = coverage.next_seq - 1
    assert len(seen) + coverage.missing + coverage.open_gaps == highest


def test_the_oldest_gap_is_closed_counted_and_stays_closed() -> None:
    coverage = Coverage()
    for number in range(2, 2 + 3 * (MAX_RANGES + 1), 3):
        coverage.add((number, number))
    assert len(coverage.ranges) == MAX_RANGES and coverage.ranges[0] == (2, 5)
    assert coverage.missing == 2 and coverage.closed == [(3, 4)]
    assert coverage.place((3, 3)) == coverage.place((3, 4)) == GAP_CLOSED
    assert coverage.place((2, 2)) == coverage.place((5, 5)) == COVERED
    assert coverage.place((4, 5)) == coverage.place((2, 5)) == PARTIAL_OVERLAP
    assert coverage.place((1, 1)) == NEW


@pytest.mark.parametrize("stored", [([], [], 0), ([[1, 5], [9, 9]], [[3, 3]], 1)])
def test_stored_ranges_are_read_back(stored: tuple[list[list[int]], list[list[int]], int]) -> None:
    coverage = Coverage.of(*stored)
    assert (
        [list(pair) for pair in coverage.ranges],
        [list(pair) for pair in coverage.closed],
        coverage.missing,
    ) == stored
