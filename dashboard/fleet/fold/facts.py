"""The facts of a batch of reports, keyed by natural keys; merging is associative and commutative
(sums of floats up to rounding)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from compilewatch.wire.messages import MAX_VALUES, pattern_rank

from dashboard.fleet.fold.counters import CallCounts, ProcessCounts, larger, smaller
from dashboard.fleet.fold.keys import FindingKey, InstanceKey, RegionKey, Source, VersionKey
from dashboard.fleet.fold.numerics import ParityFact

Span = tuple[int, int]
"""First and last minute, both with data."""

EagerFallback = tuple[float, str]
"""When a frame latched, and what else is known of it as JSON text."""

Receipt = tuple[float, str, str, str]
"""What an instance tells of a command: when, what became of it, the command's id, and the rest as
JSON text."""

ColdStartReport = tuple[bool, float, str]
"""A cold start as its agent tells it: whether it is told up to `ready`, its seconds, and its stages
as JSON text."""

ProcessExit = tuple[float, int, str]
"""When a process ended, its exit code, and the name of the signal that ended it; -1 and empty where
that is not known."""

K = TypeVar("K")


@dataclass(slots=True)
class InstanceFact:
    """What is known of an instance; `latest` wins by sequence number, so an old report never
    replaces what a newer one said."""

    source: Source
    seq: int
    digest: str
    identity: dict[str, Any]
    clock_offset: float
    compiling: tuple[float, str, float | None]
    """For how many seconds, which frame, and how long that took at most before."""
    first_minute: int
    last_minute: int
    last_seen: float
    losses: tuple[int, ...]
    """Each only grows: the largest is the newest."""
    calls: tuple[int, int, int] = (0, 0, 0)
    """Of the newest report that knew of any whether they ran compiled: its number, the calls, and
    those that ran eager."""
    late_windows: int = 0
    ready: float | None = None
    active: int | None = None
    """The first minute in which it called what is watched, or compiled; None: it only started so
    far."""
    ended: ProcessExit | None = None
    latched: dict[tuple[str, str], EagerFallback] = field(default_factory=dict)
    """By frame and cause, the first time it was told."""
    receipts: set[Receipt] = field(default_factory=set)
    parities: dict[str, ParityFact] = field(default_factory=dict)
    """By the name of the golden batch."""

    def add(self, other: InstanceFact) -> None:
        """Adds what another report of the same instance says."""
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
    """One compilation, with the place it has in its report; together they name it for ever."""

    source: Source
    day: int
    seq: int
    number: int
    at: float
    columns: dict[str, Any]


@dataclass(slots=True)
class ColdStartFact:
    """The start of a process as far as its reports tell; moments are Unix seconds by the server's
    clock."""

    source: Source
    started: float
    ready: float | None = None
    first_compile: float | None = None
    first_call: float | None = None
    marks: dict[str, float] = field(default_factory=dict)
    told: ColdStartReport | None = None
    """What the agent itself says of it: the fullest wins."""

    def add(self, other: ColdStartFact) -> None:
        """Adds what another report says of the same start."""
        self.started = min(self.started, other.started)
        self.ready = smaller(self.ready, other.ready)
        self.first_compile = smaller(self.first_compile, other.first_compile)
        self.first_call = smaller(self.first_call, other.first_call)
        for name, at in other.marks.items():
            self.marks[name] = min(at, self.marks.get(name, at))
        self.told = larger(self.told, other.told)


@dataclass(slots=True)
class Occurrences:
    """How often something was seen, and when first and last."""

    count: int
    first: float
    last: float
    seconds: float = 0.0
    """What it cost together, where that is known."""

    def add(self, other: Occurrences) -> None:
        """Adds another sighting."""
        self.count += other.count
        self.seconds += other.seconds
        self.first = min(self.first, other.first)
        self.last = max(self.last, other.last)


def limit_values(values: Iterable[str]) -> frozenset[str]:
    """As many as the wire holds, the same in whatever order they came."""
    return frozenset(sorted(values)[:MAX_VALUES])


@dataclass(slots=True)
class FindingFact:
    """A group of like events: the earliest sample, and how often it was seen by whom."""

    sample: tuple[float, str, str]
    """When, the text, and where."""
    seen: dict[Source, Occurrences]
    values: frozenset[str] = frozenset()
    """Values, classes or names that a guard met; of many the first ones by their text."""
    distinct: int = 0
    """How many different ones one process met at most; 0: the finding is not about values."""
    pattern: str = ""

    def add(self, other: FindingFact) -> None:
        """Adds sightings of the same finding."""
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
    """Everything a batch of reports says. `hours` holds only windows too long for a minute: the
    store adds the minutes to them."""

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
        """Adds the facts of another batch; the other batch must not be used afterwards, its values
        may be shared."""
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
        """The days since 1970 that rows will be written for."""
        return {minute // 1440 for _, minute in self.process_minutes} | {
            fact.day for fact in self.compiles.values()
        }

    def note_changed(self, version: VersionKey, first: int, last: int) -> None:
        """Minutes from first to last have new data that the judge looks at."""
        known = self.changed.get(version)
        self.changed[version] = (
            (min(known[0], first), max(known[1], last)) if known else (first, last)
        )

    def note_seen(self, version: VersionKey, since: float, until: float) -> None:
        """The version reported about this time."""
        known = self.seen.get(version)
        self.seen[version] = (
            (min(known[0], since), max(known[1], until)) if known else (since, until)
        )


def value_add(table: dict[K, Any], key: K, value: Any) -> None:
    """Adds a value to what the table holds under the key; the value belongs to the table
    afterwards."""
    known = table.setdefault(key, value)
    if known is not value:
        known.add(value)


def _add_all(mine: dict[K, Any], theirs: dict[K, Any]) -> None:
    for key, value in theirs.items():
        value_add(mine, key, value)
