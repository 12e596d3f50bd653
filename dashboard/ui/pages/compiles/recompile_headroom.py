"""Live cache entries of each frame and the limit in force; at the limit torch compiles no further
variant, and calls run eager."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.fleet.metrics.recompile_reasons import summarize_reason
from dashboard.fleet.selectors.compilations.compilations import VersionCompilation
from dashboard.fleet.selectors.instances.cold_starts import ProcessStart
from dashboard.vocabulary import numbers

COUNTED_KINDS = ("first", "recompile", "empty")
"""Compilations that add a cache entry to their code object."""
MOST_PIPS, PIP = 16, 11
REASONS_SHOWN = 2
NOT_REPORTED = "not reported by this agent"

Frame = tuple[str, str, int]


@dataclass(frozen=True)
class CacheEntries:
    """Cache entries of a code object after its newest compilation; None: not reported. `limit` is
    None if there is no limit."""

    count: int | None = None
    limit: int | None = None

    @property
    def left(self) -> int | None:
        """Number of further variants that fit; None without a known limit."""
        return (
            max(0, self.limit - self.count)
            if self.limit is not None and self.count is not None
            else None
        )

    @property
    def words(self) -> str:
        """The text `1 of 8 cache entries`; without a limit, only the count."""
        if self.count is None:
            return NOT_REPORTED
        if self.limit is None:
            return numbers.plural(self.count, "cache entry", "cache entries")
        return f"{self.count} of {numbers.plural(self.limit, 'cache entry', 'cache entries')}"

    @property
    def pips(self) -> list[tuple[int, bool]]:
        """Position of each mark and whether an entry fills it; empty without a known limit or with
        too many marks."""
        if self.limit is None or self.count is None or self.limit > MOST_PIPS:
            return []
        return [(number * PIP, number < self.count) for number in range(self.limit)]

    @property
    def pips_width(self) -> int:
        """The total width of the marks."""
        return PIP * len(self.pips)


@dataclass(frozen=True)
class FrameHeadroom:
    """One frame on the instance with the least headroom."""

    key: Frame
    frame: str
    place: str
    entries: CacheEntries
    most: str
    instances: int
    untold: int
    """Instances whose agent does not report entries."""
    latched: int
    reasons: list[str]
    more: int

    @property
    def near(self) -> bool:
        """Whether at most one more variant fits."""
        return bool(self.latched) or (self.entries.left is not None and self.entries.left <= 1)


def find_fullest(newest: Iterable[CacheEntries]) -> CacheEntries:
    """The entries with the least headroom; entries without a limit come after those with a limit,
    unknown entries last."""
    return min(
        newest,
        key=lambda one: (one.left is None, one.left or 0, one.count is None, -(one.count or 0)),
        default=CacheEntries(),
    )


def list_frame_headroom(
    events: Iterable[VersionCompilation], own: Sequence[ProcessStart]
) -> list[FrameHeadroom]:
    """Frames, least headroom first; `events` are in the order in which they ended."""
    newest: dict[Frame, dict[int, CacheEntries]] = {}
    reasons: dict[Frame, Counter[str]] = {}
    for event in events:
        if event.kind in COUNTED_KINDS:
            key = (event.frame, event.file, event.line)
            newest.setdefault(key, {})[event.instance_id] = CacheEntries(
                event.entries, event.entry_limit
            )
            if said := summarize_reason(event.reason_kind, event.reason):
                reasons.setdefault(key, Counter())[said] += 1
    names = {one.id: one.name for one in own}
    latched = Counter(
        str(fact.get("frame") or "")
        for process in own
        for fact in process.latched
        if fact.get("cause", "limit") == "limit"
    )
    rows = [
        _room(key, found, reasons.get(key, Counter()), names, latched[key[0]])
        for key, found in newest.items()
    ]
    return sorted(
        rows,
        key=lambda row: (
            -bool(row.latched),
            row.entries.left is None,
            row.entries.left or 0,
            row.frame,
            row.place,
        ),
    )


def _room(
    key: Frame,
    newest: dict[int, CacheEntries],
    reasons: Counter[str],
    names: dict[int, str],
    latched: int,
) -> FrameHeadroom:
    frame, file, line = key
    most = find_fullest(newest.values())
    return FrameHeadroom(
        key=key,
        frame=frame or "a frame",
        place=f"{file}:{line}" if file else "",
        entries=most,
        most=next(
            (names.get(instance, "") for instance, entries in newest.items() if entries == most), ""
        ),
        instances=len(newest),
        untold=sum(one.count is None for one in newest.values()),
        latched=latched,
        reasons=[reason for reason, _ in reasons.most_common(REASONS_SHOWN)],
        more=max(0, len(reasons) - REASONS_SHOWN),
    )


def format_nearest_limit(rows: Sequence[FrameHeadroom]) -> str:
    """The frame with the least headroom on one line; empty if no frame has a known limit."""
    if not rows:
        return ""
    if rows[0].latched:
        return f"reached on {numbers.plural(rows[0].latched, 'instance')}"
    return (
        f"{rows[0].entries.count} of {rows[0].entries.limit}"
        if rows[0].entries.left is not None
        else ""
    )
