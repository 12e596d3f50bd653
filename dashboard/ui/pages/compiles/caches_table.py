"""Compile-cache lookups of a version by cache, by count and by seconds of whole compilations, with
the hit rates of its baseline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.fleet.selectors.compilations.cache_answers import VersionCacheAnswers
from dashboard.vocabulary import numbers

NAMES = {
    "fx": "FX graph",
    "aot": "AOTAutograd",
    "autotune": "Autotune",
    "bundle": "Triton bundle",
    "mega": "Mega-cache",
}
ANSWERS = ("hit", "miss", "bypass")


@dataclass
class AnswerTally:
    """Compilations with one cache result."""

    compilations: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class CacheRow:
    """One cache: compilations and their time for each result."""

    name: str
    cells: list[tuple[str, str, str]]
    """Title, count, time."""
    rate: float | None
    """Share of hits among hits and misses, by count."""
    of_seconds: str
    """Share of hits by seconds. A hit is faster than the miss that it replaces, so this share is
    smaller than the share by count."""
    base: float | None
    """The rate of the baseline."""

    @property
    def share(self) -> str:
        """The rate as text; empty without a hit or miss."""
        return numbers.percent(self.rate) if self.rate is not None else ""

    @property
    def width(self) -> float:
        """Width of the bar in percent."""
        return round(100 * (self.rate or 0.0), 1)

    @property
    def pair(self) -> str:
        """The rates of both versions; empty if one is unknown."""
        if self.rate is None or self.base is None:
            return ""
        return f"{numbers.percent(self.base)} → {numbers.percent(self.rate)}"

    @property
    def change(self) -> str:
        """The difference of the rates."""
        if self.rate is None or self.base is None:
            return ""
        return numbers.points(self.rate - self.base)


def list_cache_rows(
    answered: Iterable[VersionCacheAnswers], *, version: int, baseline: int | None
) -> list[CacheRow]:
    """The caches that the version looked up."""
    answered = list(answered)
    mine = [one for one in answered if one.version_id == version]
    theirs = [one for one in answered if one.version_id == baseline]
    return [row for cache in NAMES if (row := _row(cache, mine, theirs)) is not None]


def _row(
    cache: str, mine: Sequence[VersionCacheAnswers], theirs: Sequence[VersionCacheAnswers]
) -> CacheRow | None:
    tallies, before = _tally(cache, mine), _tally(cache, theirs)
    if not any(tally.compilations for tally in tallies.values()):
        return None
    seconds = _rate(tallies["hit"].seconds, tallies["miss"].seconds)
    return CacheRow(
        NAMES[cache],
        [_cell(answer, tallies[answer]) for answer in ANSWERS],
        _rate(tallies["hit"].compilations, tallies["miss"].compilations),
        numbers.percent(seconds) if seconds is not None else "",
        _rate(before["hit"].compilations, before["miss"].compilations),
    )


def _tally(cache: str, answered: Sequence[VersionCacheAnswers]) -> dict[str, AnswerTally]:
    tallies = {answer: AnswerTally() for answer in ANSWERS}
    for one in answered:
        tally = tallies.get(one.answers.get(cache, ""))
        if tally is not None:
            tally.compilations += one.compilations
            tally.seconds += one.seconds
    return tallies


def _rate(hit: float, miss: float) -> float | None:
    return hit / (hit + miss) if hit + miss else None


def _cell(answer: str, tally: AnswerTally) -> tuple[str, str, str]:
    title = {"hit": "Hits", "miss": "Misses", "bypass": "Bypassed"}[answer]
    return (
        title,
        numbers.number(tally.compilations),
        numbers.duration(tally.seconds) if tally.compilations else "",
    )
