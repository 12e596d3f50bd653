"""Trait separation: the traits that separate bad instances best from the others, each with the
probability of chance.

The chance is the one-sided tail of Fisher's exact test, times the number of values that could reach
a low p-value at all (after Tarone, 1990).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dashboard.regressions.judge.environment_diff import FIRST_KEYS, read_value

Certainty = Literal["clear", "weak", "few"]
Split = tuple[int, int]
"""Two bit sets: the members of the bad side of a trait, and the instances that report the trait."""

MIN_SCORE = 0.3
"""A smaller difference of shares does not count as a separation."""
CLEAR_CHANCE, WEAK_CHANCE = 0.01, 0.1
"""Maximum probability of such a separation by chance, among all examined traits: clear and weak."""


@dataclass(frozen=True, slots=True)
class Separation:
    """One trait with its counts on bad and other instances. `absent` is set if the other instances
    share it.

    `also` names traits that split the instances identically. No count can distinguish them.
    """

    key: str
    value: str
    absent: bool
    bad_with: int
    bad: int
    good_with: int
    good: int
    chance: float
    also: tuple[tuple[str, str], ...] = ()

    @property
    def score(self) -> float:
        """1 if the trait is on all of one side and none of the other; 0 if it is equally frequent
        on both."""
        return abs(self.bad_with / self.bad - self.good_with / self.good)

    @property
    def sure(self) -> Certainty:
        """Certainty class by the probability of chance: clear, weak, or too few instances."""
        return (
            "clear"
            if self.chance < CLEAR_CHANCE
            else "weak"
            if self.chance < WEAK_CHANCE
            else "few"
        )


def find_separations(
    bad: Sequence[Mapping[str, str]], good: Sequence[Mapping[str, str]]
) -> list[Separation]:
    """The separating traits, best first; empty if a side is empty. A trait is counted over the
    instances that report it."""
    if not bad or not good:
        return []
    everyone = [*bad, *good]
    keys = sorted({key for one in everyone for key in one}, key=_order)
    columns = {key: [read_value(one, key) for one in everyone] for key in keys}
    varying = {key: values for key, values in columns.items() if _varies(values, len(bad))}
    tried = sum(_count_candidates(*_list_known(values, len(bad))) for values in varying.values())
    best = [_best(key, values, len(bad), tried) for key, values in varying.items()]
    return sorted(
        _join_equal_splits([one for one in best if one[0].score >= MIN_SCORE]),
        key=lambda one: (-one.score, one.chance, _order(one.key)),
    )


def _list_known(values: Sequence[str | None], bad: int) -> tuple[list[str], int]:
    """The reported values, and the number of bad instances among them, which come first."""
    return [value for value in values if value is not None], sum(
        value is not None for value in values[:bad]
    )


def _varies(values: Sequence[str | None], bad: int) -> bool:
    """True if both sides report the trait and the values differ."""
    known, of_bad = _list_known(values, bad)
    return 0 < of_bad < len(known) and len(set(known)) > 1


def _best(
    key: str, everyone: Sequence[str | None], all_bad: int, tried: int
) -> tuple[Separation, Split]:
    """The value of one trait that separates best, and its split."""
    values, bad = _list_known(everyone, all_bad)
    with_bad, with_good = Counter(values[:bad]), Counter(values[bad:])
    good = len(values) - bad

    def apart(value: str) -> float:
        return with_bad[value] / bad - with_good[value] / good

    value = max(sorted(set(values)), key=lambda one: (abs(apart(one)), apart(one)))
    absent = apart(value) < 0
    found = Separation(key, value, absent, with_bad[value], bad, with_good[value], good, 1.0)
    members = sum(
        1 << place
        for place, one in enumerate(everyone)
        if one is not None and (one == value) is not absent
    )
    telling = sum(1 << place for place, one in enumerate(everyone) if one is not None)
    return replace(found, chance=min(1.0, max(1, tried) * compute_chance(found))), (
        members,
        telling,
    )


def _count_candidates(values: Sequence[str], bad: int) -> int:
    """Number of values of a trait that could reach a low p-value. A value of a single instance
    among many never could."""
    counts, total = Counter(values), len(values)
    ways = math.comb(total, bad)
    able = sum(
        _count_tail(count, min(count, bad), bad, total) < WEAK_CHANCE * ways
        for count in counts.values()
    )
    return able - 1 if len(counts) == 2 and able == 2 else able


def _count_tail(with_it: int, at_least: int, bad: int, total: int) -> int:
    """Number of ways in which at least `at_least` bad instances have the value."""
    return sum(
        math.comb(with_it, k) * math.comb(total - with_it, bad - k)
        for k in range(at_least, min(with_it, bad) + 1)
    )


def _join_equal_splits(found: Sequence[tuple[Separation, Split]]) -> list[Separation]:
    """One separation per split, in the order of the keys. Traits with the same split are listed
    with it."""
    first: dict[Split, Separation] = {}
    for one, members in found:
        known = first.get(members)
        first[members] = (
            one if known is None else replace(known, also=(*known.also, (one.key, one.value)))
        )
    return list(first.values())


def compute_chance(found: Separation) -> float:
    """Probability that at least as many bad instances have the trait if the same traits are
    assigned at random."""
    with_it = found.bad_with + found.good_with
    at_least = found.bad_with
    if found.absent:
        with_it, at_least = found.bad + found.good - with_it, found.bad - found.bad_with
    total = found.bad + found.good
    return _count_tail(with_it, at_least, found.bad, total) / math.comb(total, found.bad)


def _order(key: str) -> tuple[int, str]:
    return (FIRST_KEYS.index(key) if key in FIRST_KEYS else len(FIRST_KEYS), key)
