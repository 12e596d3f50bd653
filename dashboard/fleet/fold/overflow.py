"""Overflow: renames entities over a limit to `other`, so that every total remains exact."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from dashboard.fleet.fold.facts import CompileFact, Facts, FindingFact, InstanceFact, value_add
from dashboard.fleet.fold.keys import (
    OTHER,
    OTHER_INSTANCE_PREFIX,
    EnvironmentKey,
    FindingKey,
    InstanceKey,
    RegionKey,
    SeriesKey,
    Source,
    VersionKey,
    to_instance_key,
    to_series_key,
)

OTHER_FINDING = "other findings of this kind: there was no room for more of them on that day"

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class OverflowNames:
    """New names of versions; instances and environments that become `other`."""

    versions: Mapping[VersionKey, VersionKey] = field(default_factory=dict)
    instances: Collection[InstanceKey] = ()
    environments: Collection[EnvironmentKey] = ()

    def version(self, version: VersionKey) -> VersionKey:
        """Return the new name of the version, else its own."""
        return self.versions.get(version, version)

    def environment(self, project: int, environment: str) -> str:
        """Return the new name of the environment, else its own."""
        return OTHER if EnvironmentKey(project, environment) in self.environments else environment

    def source(self, source: Source) -> Source:
        """Return the source under its new names.

        One `other` instance represents all instances of the same version, environment, GPU and
        world size.
        """
        version, environment = (
            self.version(source.version),
            self.environment(source.version.project, source.environment),
        )
        if to_instance_key(source) not in self.instances:
            return source._replace(version=version, environment=environment)
        group = (version.model, version.version, environment, source.gpu, str(source.world_size))
        digest = hashlib.blake2b("\0".join(group).encode(), digest_size=10).hexdigest()
        return source._replace(
            version=version, environment=environment, instance=OTHER_INSTANCE_PREFIX + digest
        )


def rename_sources(facts: Facts, renamed: OverflowNames) -> Facts:
    """Rename versions, instances and environments. Start, identity and losses of a renamed process
    are dropped."""
    found = Facts(
        minutes=_rekey(facts.minutes, lambda key: (renamed.source(key[0]), key[1], key[2])),
        hours=_rekey(facts.hours, lambda key: (renamed.source(key[0]), key[1], key[2])),
        process_minutes=_rekey(facts.process_minutes, lambda key: (renamed.source(key[0]), key[1])),
        process_hours=_rekey(facts.process_hours, lambda key: (renamed.source(key[0]), key[1])),
        simulated={renamed.version(version) for version in facts.simulated},
    )
    for fact in facts.instances.values():
        value_add(
            found.instances,
            to_instance_key(renamed.source(fact.source)),
            _rename_instance(fact, renamed),
        )
    for compiled in facts.compiles.values():
        moved = _rename_compile(compiled, renamed)
        found.compiles[to_instance_key(moved.source), moved.seq, moved.number] = moved
    for key, start in facts.cold_starts.items():
        if key not in renamed.instances:
            found.cold_starts[key] = replace(start, source=renamed.source(start.source))
    for finding, sightings in facts.findings.items():
        seen = FindingFact(sightings.sample, _rekey(sightings.seen, renamed.source))
        model = next(iter(seen.seen)).version.model
        value_add(found.findings, finding._replace(model=model), seen)
    for (version, environment), spans in facts.presence.items():
        place = (renamed.version(version), renamed.environment(version.project, environment))
        found.presence.setdefault(place, set()).update(spans)
    for version, (first, last) in facts.changed.items():
        found.note_changed(renamed.version(version), first, last)
    for version, (since, until) in facts.seen.items():
        found.note_seen(renamed.version(version), since, until)
    return found


def rename_series(facts: Facts, refused: Collection[SeriesKey]) -> Facts:
    """Move the calls of these series to `other`.

    Outermost regions remain separate, because only their calls are calls of callers.
    """

    def moved(key: tuple[Source, RegionKey, int]) -> tuple[Source, RegionKey, int]:
        source, place, at = key
        return (
            key
            if to_series_key(source, place) not in refused
            else (source, RegionKey(OTHER, OTHER, OTHER, OTHER, place.outermost), at)
        )

    return replace(facts, minutes=_rekey(facts.minutes, moved), hours=_rekey(facts.hours, moved))


def rename_findings(facts: Facts, refused: Collection[FindingKey]) -> Facts:
    """Merge these findings into one collective finding per model and kind."""
    found: dict[FindingKey, FindingFact] = {}
    for key, fact in facts.findings.items():
        if key in refused:
            key, fact = (
                key._replace(fingerprint=OTHER),
                replace(fact, sample=(fact.sample[0], OTHER_FINDING, "")),
            )
        value_add(found, key, fact)
    return replace(facts, findings=found)


def _rekey(table: dict[K, V], rename: Callable[[K], K]) -> dict[K, V]:
    found: dict[K, V] = {}
    for key, value in table.items():
        value_add(found, rename(key), value)
    return found


def _rename_instance(fact: InstanceFact, renamed: OverflowNames) -> InstanceFact:
    source = renamed.source(fact.source)
    if source.instance == fact.source.instance:
        return replace(fact, source=source)
    nothing = {
        "kind": "",
        "host": OTHER,
        "node": "",
        "job": "",
        "rank": 0,
        "pid": None,
        "torch": "",
        "agent": "",
        "label": "",
        "role": "",
        "identity": {},
        "capabilities": {},
        "components": {},
    }
    known = {name: fact.identity[name] for name in ("world_size", "gpu", "simulated")}
    return InstanceFact(
        source=source,
        seq=0,
        digest=OTHER,
        identity={**nothing, **known, "started": fact.first_minute * 60.0},
        clock_offset=0.0,
        compiling=(0.0, "", None),
        first_minute=fact.first_minute,
        last_minute=fact.last_minute,
        last_seen=fact.last_seen,
        losses=tuple(0 for _ in fact.losses),
        active=fact.active,
    )


def _rename_compile(fact: CompileFact, renamed: OverflowNames) -> CompileFact:
    """Two processes may use equal report numbers, so under `other` a hash of process and number
    replaces the number."""
    source = renamed.source(fact.source)
    if source.instance == fact.source.instance:
        return replace(fact, source=source)
    digest = hashlib.blake2b(f"{fact.source.instance} {fact.seq}".encode(), digest_size=8).digest()
    return replace(fact, source=source, seq=int.from_bytes(digest, "big") >> 1)
