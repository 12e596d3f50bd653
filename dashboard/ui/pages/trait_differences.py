"""What is different about the bad instances, in words: ranked by how well each trait separates,
with the counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dashboard.regressions.judge.trait_separation import Separation, find_separations
from dashboard.vocabulary import numbers

SHOWN = 8
CONFIDENCE_LABELS = {
    "clear": "separates them: chance alone would hardly do it",
    "weak": "may be chance: it would show as much in up to one of ten looks",
    "few": "too few instances to tell it from chance",
}
VALUE_SHOWN = 80


@dataclass(frozen=True)
class DifferenceLine:
    """One trait; names and values are the agent's and are only ever escaped."""

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
    """The lines, the best first, and who was compared with whom."""

    lines: list[DifferenceLine]
    total: int
    bad: int
    good: int
    bad_words: str
    good_words: str

    @property
    def clear(self) -> list[DifferenceLine]:
        """What chance would hardly do."""
        return [line for line in self.lines if line.sure == "clear"]

    @property
    def weak(self) -> list[DifferenceLine]:
        """The others, which are shown when they are asked for: among a few instances each has a
        host of its own."""
        return [line for line in self.lines if line.sure != "clear"]

    @property
    def nothing(self) -> str:
        """Why there is no line."""
        if not self.bad:
            return f"There are no {self.bad_words}."
        if not self.good:
            return f"There are no {self.good_words} to compare with."
        return (
            "Nothing that is known of them differs: neither machine nor libraries, "
            "configuration, caches, shapes or findings."
        )


def compare_traits(
    traits: Mapping[int, Mapping[str, str]],
    bad: Collection[int],
    good: Collection[int],
    *,
    bad_words: str,
    good_words: str,
) -> TraitDifferences:
    """Compares these instances; those without known traits are left out, and where one side is
    empty nobody asked for traits."""
    if not bad or not good:
        return TraitDifferences([], 0, len(bad), len(good), bad_words, good_words)
    sides = [[traits[id] for id in sorted(ids) if id in traits] for ids in (bad, good)]
    found = find_separations(*sides)
    lines = [_line(one, bad_words, good_words) for one in found[:SHOWN]]
    return TraitDifferences(lines, len(found), len(sides[0]), len(sides[1]), bad_words, good_words)


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
    """all 3, none of 9, 2 of 7."""
    if count == whole:
        return f"all {numbers.number(whole)}" if whole > 1 else "the one of the"
    return f"{'none' if count == 0 else numbers.number(count)} of {numbers.number(whole)}"
