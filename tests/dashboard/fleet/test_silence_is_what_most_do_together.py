"""Silence of a model or fleet: more than half of the processes, and at least two, fall silent
together, and no new processes replace them."""

from __future__ import annotations

import random

from dashboard.fleet.metrics.silence import InstanceSpan, find_silence

HOUR = 3600.0


def lives(
    model: int, count: int, *, seen: float = 0.0, silent: bool = False, started: float = -HOUR
) -> list[InstanceSpan]:
    return [InstanceSpan(model, started, seen, silent) for _ in range(count)]


def test_the_counts_cover_the_processes_alive_when_the_silence_began() -> None:
    found = find_silence([*lives(1, 3, silent=True), *lives(1, 2, seen=900.0)])
    assert found is not None
    assert (found.silent, found.of, found.first, found.last, found.models) == (3, 5, 0.0, 0.0, (1,))


def test_half_is_not_enough_and_one_is_not_enough() -> None:
    assert find_silence([*lives(1, 2, silent=True), *lives(1, 2, seen=900.0)]) is None
    assert find_silence(lives(1, 1, silent=True)) is None
    assert find_silence([]) is None


def test_the_same_number_of_new_processes_of_the_model_replaces_the_old_ones() -> None:
    old, new = lives(1, 10, silent=True), lives(1, 10, seen=900.0, started=-60.0)
    assert find_silence([*old, *new]) is None
    assert find_silence([*old, *new[:8]]) is None, "a smaller rollout"
    part = find_silence([*old, *new[:3]])
    assert part is not None and (part.silent, part.of) == (7, 10)


def test_new_processes_of_another_model_replace_none() -> None:
    found = find_silence([*lives(1, 10, silent=True), *lives(2, 8, seen=900.0, started=-60.0)])
    assert found is not None and (found.silent, found.of) == (10, 18)


def test_earlier_losses_are_not_counted() -> None:
    earlier = lives(1, 3, seen=-1200.0, silent=True)
    found = find_silence([*earlier, *lives(1, 4, silent=True), *lives(1, 3, seen=900.0)])
    assert found is not None and (found.silent, found.of) == (4, 7)


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows = [
        *lives(1, 5, silent=True),
        *lives(2, 7, silent=True, seen=100.0),
        *lives(3, 4, seen=900.0),
        *lives(1, 2, started=-30.0, seen=900.0),
    ]
    first = find_silence(rows)
    for seed in range(20):
        random.Random(seed).shuffle(rows)
        assert find_silence(rows) == first
