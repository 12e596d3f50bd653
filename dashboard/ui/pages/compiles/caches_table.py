"""Compile-cache lookups of each version with their misses and causes, by count and by seconds of
whole compilations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN

from dashboard.fleet.selectors.compilations.cache_answers import VersionCacheAnswers
from dashboard.fleet.selectors.compilations.cache_miss_causes import MissExplanation
from dashboard.ui.charts.version_styles import VersionStyle
from dashboard.ui.pages.compiles.cache_queries import CacheData
from dashboard.vocabulary import numbers

NAMES = {
    "fx": "FX graph",
    "aot": "AOTAutograd",
    "autotune": "Autotune",
    "bundle": "Triton bundle",
    "mega": "Mega-cache",
}
ANSWERS = ("hit", "miss", "bypass")
CAUSES_SHOWN = 8
WARM, NONE_WARM = "the last warm instance", "the last that compiled: none was warm"


@dataclass
class AnswerTally:
    """Compilations with one cache result."""

    compilations: int = 0
    seconds: float = 0.0

    def add(self, compilations: int, seconds: float) -> None:
        """Adds compilations; negative values subtract."""
        self.compilations += compilations
        self.seconds = max(0.0, self.seconds + seconds)


@dataclass(frozen=True)
class CacheRow:
    """One cache of one version: compilations and their time for each result."""

    name: str
    cells: list[tuple[str, str, str]]
    """Title, count, time."""
    share: str
    """Share of hits among hits and misses, by count."""
    of_seconds: str
    """Share of hits by seconds. A hit is faster than the miss that it replaces, so this share is
    smaller than the share by count."""


@dataclass(frozen=True)
class VersionCaches:
    """One version."""

    version: VersionStyle
    rows: list[CacheRow]
    saved: str
    """Torch's estimate of the time that the caches saved."""


@dataclass(frozen=True)
class MissCause:
    """One cause of cache misses of a version."""

    version: VersionStyle
    text: str
    facts: str
    against: str


@dataclass(frozen=True)
class CachesTable:
    """All data of the card."""

    versions: list[VersionCaches] = field(default_factory=list)
    causes: list[MissCause] = field(default_factory=list)
    more: int = 0
    """Number of causes that are not shown."""


def caches_table(drawn: Sequence[VersionStyle], facts: CacheData) -> CachesTable:
    """The table, with the versions that looked up a cache, in the order of `drawn`."""
    by_version: dict[int, list[VersionCacheAnswers]] = {}
    for one in facts.answered:
        by_version.setdefault(one.version_id, []).append(one)
    versions = [
        _version(version, by_version[version.id])
        for version in drawn
        if any(one.answers for one in by_version.get(version.id, []))
    ]
    causes = _causes(drawn, facts)
    return CachesTable(versions, causes[:CAUSES_SHOWN], max(0, len(causes) - CAUSES_SHOWN))


def format_cause(cause: str, compared: MissExplanation | None) -> str:
    """The cause that the agent reported. If the agent knew no earlier run, the result of the
    comparison with another instance."""
    if cause != NO_EARLIER_RUN or compared is None or not compared.against:
        return cause
    return f"{compared.cause}, compared with {compared.against}"


def _version(version: VersionStyle, answered: Sequence[VersionCacheAnswers]) -> VersionCaches:
    rows = [row for cache in NAMES if (row := _row(cache, answered)) is not None]
    saved = sum(one.saved for one in answered)
    return VersionCaches(version, rows, numbers.duration(saved) if saved else "")


def _row(cache: str, answered: Sequence[VersionCacheAnswers]) -> CacheRow | None:
    tallies = {answer: AnswerTally() for answer in ANSWERS}
    for one in answered:
        tally = tallies.get(one.answers.get(cache, ""))
        if tally is not None:
            tally.add(one.compilations, one.seconds)
    if not any(tally.compilations for tally in tallies.values()):
        return None
    hit, miss = tallies["hit"], tallies["miss"]
    cells = [_cell(answer, tallies[answer]) for answer in ANSWERS]
    return CacheRow(
        NAMES[cache],
        cells,
        _share(hit.compilations, miss.compilations),
        _share(hit.seconds, miss.seconds),
    )


def _share(hit: float, miss: float) -> str:
    return numbers.percent(hit / (hit + miss)) if hit + miss else ""


def _cell(answer: str, tally: AnswerTally) -> tuple[str, str, str]:
    title = {"hit": "Hits", "miss": "Misses", "bypass": "Bypassed"}[answer]
    return (
        title,
        numbers.number(tally.compilations),
        numbers.duration(tally.seconds) if tally.compilations else "",
    )


def _causes(drawn: Sequence[VersionStyle], facts: CacheData) -> list[MissCause]:
    """Causes, most costly first. A comparison with other instances explains misses that the agents
    could not, where possible."""
    found: dict[tuple[int, str, str], AnswerTally] = {}
    for one in facts.answered:
        if one.miss:
            found.setdefault((one.version_id, one.miss, ""), AnswerTally()).add(
                one.compilations, one.seconds
            )
    for two in facts.unexplained:
        known, rest = (
            facts.compared.get(two.instance_id),
            found.get((two.version_id, NO_EARLIER_RUN, "")),
        )
        if known is not None and known.against and rest is not None:
            against = f"compared with {known.against}, {WARM if known.warm else NONE_WARM}"
            found.setdefault((two.version_id, known.cause, against), AnswerTally()).add(
                two.compilations, two.seconds
            )
            rest.add(-two.compilations, -two.seconds)
    versions = {version.id: version for version in drawn}
    shown = [
        (key, tally)
        for key, tally in found.items()
        if tally.compilations > 0 and key[0] in versions
    ]
    return [
        MissCause(
            versions[version],
            text,
            f"{numbers.plural(tally.compilations, 'compilation')}, "
            f"{numbers.duration(tally.seconds)}",
            against,
        )
        for (version, text, against), tally in sorted(
            shown, key=lambda item: (-item[1].seconds, item[0])
        )
    ]
