"""Finding page: affected versions and instances, the remedy, and later versions without the
finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from dashboard.common import clock
from dashboard.fleet.fold.fingerprint import normalise
from dashboard.fleet.metrics.recompile_reasons import REPEAT_REASONS
from dashboard.fleet.selectors.findings.finding_detail import (
    FindingDetail,
    FrameCompilation,
    VersionRun,
    VersionSighting,
)
from dashboard.fleet.selectors.findings.finding_list import EnvironmentState
from dashboard.fleet.selectors.findings.findings import CERTAIN_KINDS
from dashboard.ui.charts.finding_timeline import (
    FindingTimeline,
    VersionSpan,
    build_finding_timeline,
)
from dashboard.ui.charts.guard_advice import (
    GuardRemedy,
    ObservedValues,
    VaryingInput,
    count_observed_values,
    find_varying_input,
    list_guard_remedies,
)
from dashboard.ui.charts.guard_variation import Variation, build_variation
from dashboard.ui.pages.compiles.recompile_headroom import COUNTED_KINDS, CacheEntries, find_fullest
from dashboard.ui.pages.findings.list import FindingStateLabel, format_kind, format_states
from dashboard.ui.pages.findings.remedies import build_break_url, find_remedy
from dashboard.vocabulary import numbers

FIRST_LINES = 8
ENOUGH_MINUTES = 60
"""Minimum runtime of a version that can prove a fix; most compilations happen at the start."""


@dataclass(frozen=True)
class CleanVersion:
    """A version that reported without the finding: its runtime and its compilations of the
    finding's frame."""

    version: str
    environment: str
    live: bool
    since: datetime
    minutes: int
    compilations: int
    instances: int

    @property
    def proof(self) -> str:
        """The conclusion as text; a short runtime proves nothing yet."""
        ran = numbers.duration(self.minutes * 60)
        if self.minutes < ENOUGH_MINUTES:
            return (
                f"too early: {ran} of reports, {numbers.duration(ENOUGH_MINUTES * 60)} are required"
            )
        if self.compilations:
            where = (
                f"{numbers.plural(self.compilations, 'compilation')} of the same place on "
                f"{numbers.plural(self.instances, 'instance')}"
            )
            return f"gone: {ran} of reports and {where} without it"
        return f"gone: {ran} of reports without it"


@dataclass(frozen=True)
class InstanceHeadroom:
    """Cache entries of the frame on the instance with the least headroom, of `instances`."""

    entries: CacheEntries
    instances: int


@dataclass(frozen=True)
class GuardAdvice:
    """A failing guard: the varying input, its values, the headroom and possible fixes."""

    varies: VaryingInput | None
    values: ObservedValues
    headroom: InstanceHeadroom | None
    ways: list[GuardRemedy]


@dataclass(frozen=True)
class FindingPage:
    """All data of the template."""

    detail: FindingDetail
    kind: str
    certain: bool
    title: str
    lines: str
    more: str
    normalised: str
    varies: Variation
    hint: str
    page: str
    lives: list[FindingStateLabel]
    several: bool
    way: GuardAdvice | None
    without: list[CleanVersion]
    time: FindingTimeline


def finding_page(detail: FindingDetail) -> FindingPage:
    """Builds the page."""
    finding = detail.finding
    lines = finding.text.strip().splitlines() or [finding.where or "no text"]
    several = len({seen.environment for seen in detail.versions}) > 1
    lives = [
        EnvironmentState(life.environment, life.state, life.since_minute) for life in detail.lives
    ]
    normalised = normalise(finding.text)
    return FindingPage(
        detail=detail,
        kind=format_kind(finding.kind),
        certain=finding.kind in CERTAIN_KINDS,
        title=lines[0],
        lines="\n".join(lines[:FIRST_LINES]),
        more="\n".join(lines[FIRST_LINES:]),
        normalised=normalised if normalised != " ".join(finding.text.split()) else "",
        varies=build_variation(finding.values, finding.distinct, finding.pattern, finding.text),
        hint=find_remedy(finding.kind, finding.text),
        page=build_break_url(finding.kind, finding.text),
        lives=format_states(lives, several),
        several=several,
        way=_way_out(detail) if finding.kind == "guard" else None,
        without=_without(detail),
        time=_time(detail),
    )


def _time(detail: FindingDetail) -> FindingTimeline:
    ran = (
        VersionSpan(one.version_id, one.version, one.environment, one.first, one.last + 1)
        for one in detail.ran
    )
    shown = (
        VersionSpan(
            one.version_id,
            one.version,
            one.environment,
            _minute(one.first_seen_at),
            _minute(one.last_seen_at) + 1,
            one.count,
        )
        for one in detail.versions
    )
    return build_finding_timeline(ran=ran, shown=shown, now=clock.minute_of(clock.unix()))


def _minute(at: datetime) -> int:
    return clock.minute_of(at.timestamp())


def _way_out(detail: FindingDetail) -> GuardAdvice:
    found = find_varying_input(detail.finding.text)
    recompiled = [
        one
        for one in detail.compiled
        if one.kind == "recompile" and one.reason_kind not in REPEAT_REASONS and _same(found, one)
    ]
    values = count_observed_values(one.reason for one in recompiled)
    return GuardAdvice(
        found, values, _headroom(detail.compiled), list_guard_remedies(found, values)
    )


def _same(found: VaryingInput | None, one: FrameCompilation) -> bool:
    """Whether a recompilation concerns the same input; a frame can have several failing guards."""
    return find_varying_input(one.reason) in (None, found)


def _headroom(compiled: Iterable[FrameCompilation]) -> InstanceHeadroom | None:
    """Headroom after the newest compilation of each process; `compiled` is sorted newest first."""
    newest: dict[int, CacheEntries] = {}
    for one in compiled:
        if one.kind in COUNTED_KINDS:
            newest.setdefault(one.instance_id, CacheEntries(one.entries, one.limit))
    return InstanceHeadroom(find_fullest(newest.values()), len(newest)) if newest else None


def _without(detail: FindingDetail) -> list[CleanVersion]:
    """Versions deployed after the last affected version, newest first."""
    seen = {(row.version_id, row.environment) for row in detail.versions}
    shown_from = _first_minutes(detail.versions, detail.ran)
    found = []
    for ran in detail.ran:
        if (ran.version_id, ran.environment) not in seen and ran.first > shown_from.get(
            ran.environment, ran.first
        ):
            there = [
                one
                for one in detail.compiled
                if (one.version_id, one.environment) == (ran.version_id, ran.environment)
            ]
            found.append(
                CleanVersion(
                    version=ran.version,
                    environment=ran.environment,
                    live=ran.live,
                    since=clock.at_minute(ran.first),
                    minutes=ran.last - ran.first + 1,
                    compilations=len(there),
                    instances=len({one.instance_id for one in there}),
                )
            )
    return found


def _first_minutes(
    versions: Iterable[VersionSighting], ran: Iterable[VersionRun]
) -> dict[str, int]:
    """Deployment minute of the newest affected version per environment; earlier versions cannot
    prove a fix."""
    seen = {
        (row.version_id, row.environment): clock.minute_of(row.first_seen_at.timestamp())
        for row in versions
    }
    started = {(one.version_id, one.environment): one.first for one in ran}
    newest: dict[str, int] = {}
    for key, first_seen in seen.items():
        newest[key[1]] = max(newest.get(key[1], 0), started.get(key, first_seen))
    return newest
