"""Common traits of degraded instances as text, ranked by separation, with counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dashboard.regressions.judge.trait_separation import Separation, find_separations
from dashboard.vocabulary import numbers

SHOWN = 8
CONFIDENCE_LABELS = {
    "clear": "significant: chance alone is unlikely",
    "weak": "weak: chance produces this in up to 1 of 10 comparisons",
    "few": "not significant (too few instances)",
}
VALUE_SHOWN = 80


@dataclass(frozen=True)
class DifferenceLine:
    """One trait; names and values come from the agent and are always escaped."""

    key: str
    value: str
    counts: str
    sure: str
    said: str
    also: str
    bad_share: float
    good_share: float


@dataclass(frozen=True)
class TraitDifferences:
    """The lines, best separation first, and the compared groups."""

    lines: list[DifferenceLine]
    total: int
    bad: int
    good: int
    bad_words: str
    good_words: str

    @property
    def sides(self) -> str:
        """Both sides with their numbers: 1 hung instance vs 5 other instances."""
        return f"{_count(self.bad, self.bad_words)} vs {_count(self.good, self.good_words)}"

    @property
    def clear(self) -> list[DifferenceLine]:
        """The significant differences."""
        return [line for line in self.lines if line.sure == "clear"]

    @property
    def weak(self) -> list[DifferenceLine]:
        """The other differences, collapsed by default: with few instances, every host differs."""
        return [line for line in self.lines if line.sure != "clear"]

    @property
    def nothing(self) -> str:
        """The reason for an empty list."""
        if not self.bad:
            return f"There are no {self.bad_words}."
        if not self.good:
            return f"There are no {self.good_words} to compare with."
        return (
            "No known difference in machine, libraries, configuration, caches, shapes or findings."
        )


def compare_traits(
    traits: Mapping[int, Mapping[str, str]],
    bad: Collection[int],
    good: Collection[int],
    *,
    bad_words: str,
    good_words: str,
) -> TraitDifferences:
    """Compares the two groups. Instances without known traits are omitted; `traits` is not read if
    a group is empty."""
    if not bad or not good:
        return TraitDifferences([], 0, len(bad), len(good), bad_words, good_words)
    sides = [[traits[id] for id in sorted(ids) if id in traits] for ids in (bad, good)]
    found = find_separations(*sides)
    lines = [_line(one, bad_words, good_words) for one in found[:SHOWN]]
    return TraitDifferences(lines, len(found), len(sides[0]), len(sides[1]), bad_words, good_words)


def _count(count: int, words: str) -> str:
    return f"{count} {words.replace('instances', 'instance', 1) if count == 1 else words}"


def _line(one: Separation, bad_words: str, good_words: str) -> DifferenceLine:
    if one.absent:
        counts = (
            f"{_of(one.good_with, one.good)} {good_words} and {_of(one.bad_with, one.bad)} "
            f"{bad_words}"
        )
    else:
        counts = (
            f"{_of(one.bad_with, one.bad)} {bad_words} and {_of(one.good_with, one.good)} "
            f"{good_words}"
        )
    return DifferenceLine(
        key=one.key,
        value=(one.value or "not set")[:VALUE_SHOWN],
        counts=counts,
        sure=one.sure,
        said=CONFIDENCE_LABELS[one.sure],
        also=", ".join(f"{key} {value or 'not set'}"[:VALUE_SHOWN] for key, value in one.also[:4])
        + (f" and {len(one.also) - 4} more" if len(one.also) > 4 else ""),
        bad_share=round(100 * one.bad_with / one.bad, 1),
        good_share=round(100 * one.good_with / one.good, 1),
    )


def _of(count: int, whole: int) -> str:
    """A count of a total: all 3, none of 9, 2 of 7."""
    if count == whole:
        return f"all {numbers.number(whole)}" if whole > 1 else "the one of the"
    return f"{'none' if count == 0 else numbers.number(count)} of {numbers.number(whole)}"
