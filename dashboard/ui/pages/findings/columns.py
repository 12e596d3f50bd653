"""Findings of two versions in columns (new, in both, gone), and frames in eager fallback until a
restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN

from dashboard.common import clock
from dashboard.fleet.selectors.findings.findings import FindingData, FindingHistory, FindingSighting
from dashboard.fleet.selectors.instances.instances import InstanceData
from dashboard.ui.charts.guard_variation import Variation, build_variation
from dashboard.ui.pages.findings.remedies import build_break_url, find_remedy
from dashboard.vocabulary import numbers

SHOWN = 6
FIRST_LINES = 3
KINDS = {
    "graph_break": "Graph break",
    "guard": "Guard failure",
    "fallback": "Fallback to eager",
    "cache_miss": "Cache miss",
    "cudagraph_skip": "CUDA graph skipped",
    "cudagraph_rerecord": "CUDA graph re-recorded",
    "alloc_retry": "Low GPU memory",
    "compile_error": "Compile error",
    "compiled_nothing": "Compiled nothing",
    "guards_left_out": "Guards left out",
    "hook_too_late": "Hook registered too late",
    "generator_not_compiled": "Generator not compiled",
    "limit_not_in_force": "Limit not in force",
    "wrapper_not_entered": "Watched module not called",
    "latched_eager": "Eager fallback until restart",
    "oom": "Out of memory",
    "parity": "Parity failure",
    "golden_not_compared": "Golden batch not compared",
    "golden_cached_code": "Cached code is wrong",
    "golden_hidden_by_tf32": "Difference hidden by TF32",
    "aot_load_failed": "AOT load failed",
}


@dataclass(frozen=True)
class FindingState:
    """State of a finding: the word, its start, and where the finding was first and last seen."""

    word: str
    since: datetime
    first: str
    last: str

    @property
    def mark(self) -> str:
        """The name of the mark's shape."""
        return f"life-{self.word}"


@dataclass(frozen=True)
class FindingLine:
    """One finding as text. `text`, `more` and `where` come from the agent and are always escaped.
    `hint` is a known remedy, and `page` the URL of torch's page on the break."""

    kind: str
    text: str
    more: str
    where: str
    facts: str
    since: datetime | None
    certain: bool
    hint: str = ""
    page: str = ""
    life: FindingState | None = None
    id: int = 0
    varies: Variation = field(default_factory=Variation)


@dataclass(frozen=True)
class FindingsColumn:
    """Findings that are new, in both versions or gone."""

    key: str
    title: str
    version: str
    lines: list[FindingLine]
    total: int
    seen_in: tuple[int, str]
    """Id and name of the version whose list has all findings of the column."""


@dataclass(frozen=True)
class EagerFallback:
    """A frame in eager fallback until the process restarts, on some instances of a version."""

    version_id: int
    frame: str
    cause: str
    instances: int
    known: int


def findings_columns(
    findings: Iterable[FindingData],
    *,
    judged: tuple[int, str] | None,
    baseline: tuple[int, str] | None,
) -> list[FindingsColumn]:
    """The columns new, in both and gone; with a single version, one column of its findings."""
    rows = sorted(
        findings, key=lambda finding: (not finding.certain, finding.text == NO_EARLIER_RUN)
    )
    if judged is None:
        return []
    if baseline is None:
        return [
            _column(
                "same",
                "Seen in",
                judged[1],
                judged,
                [(row, row.versions[judged[0]]) for row in rows if judged[0] in row.versions],
            )
        ]
    new = [
        (row, row.versions[judged[0]])
        for row in rows
        if judged[0] in row.versions and baseline[0] not in row.versions
    ]
    both = [
        (row, row.versions[judged[0]])
        for row in rows
        if judged[0] in row.versions and baseline[0] in row.versions
    ]
    gone = [
        (row, row.versions[baseline[0]])
        for row in rows
        if baseline[0] in row.versions and judged[0] not in row.versions
    ]
    return [
        _column("new", "New in", judged[1], judged, new),
        _column("same", "In both", "", judged, both),
        _column("gone", "Only in", baseline[1], baseline, gone),
    ]


def list_eager_fallbacks(
    instances: Iterable[InstanceData], version_ids: Sequence[int]
) -> list[EagerFallback]:
    """Frames in eager fallback per version with the number of instances, in the order of
    `version_ids`."""
    known: Counter[int] = Counter()
    seen: Counter[tuple[int, str, str]] = Counter()
    for instance in instances:
        known[instance.version_id] += 1
        frames = {
            (
                str(frame.get("frame") or "a frame"),
                str(frame.get("cause") or frame.get("reason") or ""),
            )
            for frame in instance.latched_eager
        }
        seen.update((instance.version_id, frame, cause) for frame, cause in frames)
    found = [
        EagerFallback(version, frame, cause, count, known[version])
        for (version, frame, cause), count in seen.items()
        if version in version_ids
    ]
    return sorted(
        found, key=lambda one: (version_ids.index(one.version_id), -one.instances, one.frame)
    )


def _column(
    key: str,
    title: str,
    version: str,
    seen_in: tuple[int, str],
    rows: list[tuple[FindingData, FindingSighting]],
) -> FindingsColumn:
    return FindingsColumn(
        key, title, version, [_line(row, seen) for row, seen in rows[:SHOWN]], len(rows), seen_in
    )


def _line(finding: FindingData, seen: FindingSighting) -> FindingLine:
    lines = finding.text.strip().splitlines() or [""]
    facts = numbers.plural(seen.count, "time") + (
        f" on {numbers.plural(seen.instances, 'instance')}" if seen.instances else ""
    )
    facts += f", {numbers.duration(seen.seconds)}" if seen.seconds else ""
    return FindingLine(
        kind=KINDS.get(finding.kind, finding.kind.replace("_", " ")),
        text="\n".join(lines[:FIRST_LINES]),
        more="\n".join(lines[FIRST_LINES:]),
        where=finding.where,
        facts=facts,
        since=seen.first_seen_at,
        certain=finding.certain,
        hint=find_remedy(finding.kind, finding.text),
        page=build_break_url(finding.kind, finding.text),
        life=_life(finding.life) if finding.life else None,
        id=finding.id,
        varies=build_variation(finding.values, finding.distinct, finding.pattern, finding.text),
    )


def _life(life: FindingHistory) -> FindingState:
    first = f"{life.first_version} on {life.first_host}" if life.first_host else life.first_version
    last = f"{life.last_version} on {life.last_host}" if life.last_host else life.last_version
    return FindingState(life.state, clock.at_minute(life.since_minute), first, last)
