"""Facts: contents of a batch of reports under natural keys.

Merging is associative and commutative, except that sums of floats vary by rounding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from compilewatch.wire.messages import MAX_VALUES, pattern_rank

from dashboard.fleet.fold.counters import CallCounts, ProcessCounts, larger, smaller
from dashboard.fleet.fold.keys import FindingKey, InstanceKey, RegionKey, Source, VersionKey
from dashboard.fleet.fold.numerics import ParityFact

Span = tuple[int, int]
"""First and last minute with data, both inclusive."""

EagerFallback = tuple[float, str]
"""Time of an eager fallback, and its other data as JSON text."""

Receipt = tuple[float, str, str, str]
"""Receipt of a command: time, state, command id, and the other data as JSON text."""

ColdStartReport = tuple[bool, float, str]
"""Cold start as the agent reports it: whether it is complete up to `ready`, its seconds, and its
stages as JSON text."""

ProcessExit = tuple[float, int, str]
"""Time of a process's end, its exit code (-1 if unknown), and the name of its signal (empty if
unknown)."""

K = TypeVar("K")


@dataclass(slots=True)
class InstanceFact:
    """Facts of an instance. The report with the highest sequence number supplies the identity, so
    an old report never replaces a newer one."""

    source: Source
    seq: int
    digest: str
    identity: dict[str, Any]
    clock_offset: float
    compiling: tuple[float, str, float | None]
    """Seconds since the current compilation began, its frame, and the longest earlier duration of
    that frame."""
    first_minute: int
    last_minute: int
    last_seen: float
    losses: tuple[int, ...]
    """Counters that only grow: the largest value is the newest."""
    calls: tuple[int, int, int] = (0, 0, 0)
    """Sequence number of the newest report with calls of known execution mode, the count of these
    calls, and the count of eager ones."""
    late_windows: int = 0
    ready: float | None = None
    active: int | None = None
    """First minute with calls of watched code or with compilations; None while the process only
    starts."""
    ended: ProcessExit | None = None
    latched: dict[tuple[str, str], EagerFallback] = field(default_factory=dict)
    """Earliest report of each eager fallback, by frame and cause."""
    receipts: set[Receipt] = field(default_factory=set)
    parities: dict[str, ParityFact] = field(default_factory=dict)
    """Golden batches by name."""

    def add(self, other: InstanceFact) -> None:
        """Add another report of the same instance."""
        if (other.seq, other.digest, other.clock_offset) > (
            self.seq,
            self.digest,
            self.clock_offset,
        ):
            self.source, self.seq, self.digest, self.identity = (
                other.source,
                other.seq,
                other.digest,
                other.identity,
            )
            self.clock_offset, self.compiling = other.clock_offset, other.compiling
        self.first_minute = min(self.first_minute, other.first_minute)
        self.last_minute = max(self.last_minute, other.last_minute)
        self.last_seen = max(self.last_seen, other.last_seen)
        self.calls = max(self.calls, other.calls)
        self.late_windows += other.late_windows
        self.ready = smaller(self.ready, other.ready)
        self.active = smaller(self.active, other.active)
        self.ended = larger(self.ended, other.ended)
        self.losses = tuple(map(max, self.losses, other.losses))
        for frame, latched in other.latched.items():
            self.latched[frame] = min(latched, self.latched.get(frame, latched))
        self.receipts |= other.receipts
        for name, parity in other.parities.items():
            self.parities[name] = parity.merged(self.parities.get(name, parity))


@dataclass(slots=True)
class CompileFact:
    """One compilation. Instance, report and position in the report identify a compilation
    permanently."""

    source: Source
    day: int
    seq: int
    number: int
    at: float
    columns: dict[str, Any]


@dataclass(slots=True)
class ColdStartFact:
    """Start of a process as its reports describe it; times are Unix seconds of the server's
    clock."""

    source: Source
    started: float
    ready: float | None = None
    first_compile: float | None = None
    first_call: float | None = None
    marks: dict[str, float] = field(default_factory=dict)
    told: ColdStartReport | None = None
    """Report of the agent itself; the most complete report wins."""

    def add(self, other: ColdStartFact) -> None:
        """Add another report of the same start."""
        self.started = min(self.started, other.started)
        self.ready = smaller(self.ready, other.ready)
        self.first_compile = smaller(self.first_compile, other.first_compile)
        self.first_call = smaller(self.first_call, other.first_call)
        for name, at in other.marks.items():
            self.marks[name] = min(at, self.marks.get(name, at))
        self.told = larger(self.told, other.told)


@dataclass(slots=True)
class Occurrences:
    """Count of an event, and the times of its first and last occurrence."""

    count: int
    first: float
    last: float
    seconds: float = 0.0
    """Total cost in seconds; 0 if unknown."""

    def add(self, other: Occurrences) -> None:
        """Add other occurrences."""
        self.count += other.count
        self.seconds += other.seconds
        self.first = min(self.first, other.first)
        self.last = max(self.last, other.last)


def limit_values(values: Iterable[str]) -> frozenset[str]:
    """Return up to MAX_VALUES values, independent of their order of arrival."""
    return frozenset(sorted(values)[:MAX_VALUES])


@dataclass(slots=True)
class FindingFact:
    """Group of similar events: the earliest sample, and the occurrences by source."""

    sample: tuple[float, str, str]
    """Time, text and location."""
    seen: dict[Source, Occurrences]
    values: frozenset[str] = frozenset()
    """Values, classes or names that a guard observed; at most the first MAX_VALUES in text
    order."""
    distinct: int = 0
    """Largest number of distinct values in one process; 0 if the finding has no values."""
    pattern: str = ""

    def add(self, other: FindingFact) -> None:
        """Add occurrences of the same finding."""
        self.sample = min(self.sample, other.sample)
        self.values = limit_values(self.values | other.values)
        self.distinct = max(self.distinct, other.distinct)
        self.pattern = max(self.pattern, other.pattern, key=pattern_rank)
        for source, seen in other.seen.items():
            if source in self.seen:
                self.seen[source].add(seen)
            else:
                self.seen[source] = replace(seen)


@dataclass(slots=True)
class Facts:
    """All facts of a batch. `hours` holds only windows too long for a minute; the store adds the
    minutes to their hours."""

    minutes: dict[tuple[Source, RegionKey, int], CallCounts] = field(default_factory=dict)
    hours: dict[tuple[Source, RegionKey, int], CallCounts] = field(default_factory=dict)
    process_minutes: dict[tuple[Source, int], ProcessCounts] = field(default_factory=dict)
    process_hours: dict[tuple[Source, int], ProcessCounts] = field(default_factory=dict)
    instances: dict[InstanceKey, InstanceFact] = field(default_factory=dict)
    compiles: dict[tuple[InstanceKey, int, int], CompileFact] = field(default_factory=dict)
    cold_starts: dict[InstanceKey, ColdStartFact] = field(default_factory=dict)
    findings: dict[FindingKey, FindingFact] = field(default_factory=dict)
    presence: dict[tuple[VersionKey, str], set[Span]] = field(default_factory=dict)
    changed: dict[VersionKey, Span] = field(default_factory=dict)
    seen: dict[VersionKey, tuple[float, float]] = field(default_factory=dict)
    simulated: set[VersionKey] = field(default_factory=set)

    def merge(self, other: Facts) -> None:
        """Add the facts of another batch. The other batch may share its values and must not be used
        afterwards."""
        _add_all(self.minutes, other.minutes)
        _add_all(self.hours, other.hours)
        _add_all(self.process_minutes, other.process_minutes)
        _add_all(self.process_hours, other.process_hours)
        _add_all(self.instances, other.instances)
        _add_all(self.cold_starts, other.cold_starts)
        _add_all(self.findings, other.findings)
        self.compiles.update(other.compiles)
        self.simulated |= other.simulated
        for key, spans in other.presence.items():
            self.presence.setdefault(key, set()).update(spans)
        for version, (first, last) in other.changed.items():
            self.note_changed(version, first, last)
        for version, (since, until) in other.seen.items():
            self.note_seen(version, since, until)

    def days(self) -> set[int]:
        """Return the days since 1970 that need rows."""
        return {minute // 1440 for _, minute in self.process_minutes} | {
            fact.day for fact in self.compiles.values()
        }

    def note_changed(self, version: VersionKey, first: int, last: int) -> None:
        """Note that minutes `first` to `last` have new data for the judge."""
        known = self.changed.get(version)
        self.changed[version] = (
            (min(known[0], first), max(known[1], last)) if known else (first, last)
        )

    def note_seen(self, version: VersionKey, since: float, until: float) -> None:
        """Note that the version reported between `since` and `until`."""
        known = self.seen.get(version)
        self.seen[version] = (
            (min(known[0], since), max(known[1], until)) if known else (since, until)
        )


def value_add(table: dict[K, Any], key: K, value: Any) -> None:
    """Add a value to the table's entry under `key`; the table owns the value afterwards."""
    known = table.setdefault(key, value)
    if known is not value:
        known.add(value)


def _add_all(mine: dict[K, Any], theirs: dict[K, Any]) -> None:
    for key, value in theirs.items():
        value_add(mine, key, value)
