"""Natural keys: keys of facts before database ids exist."""

from __future__ import annotations

from typing import NamedTuple

OTHER = "other"
"""Collective name for entities over a limit; never evaluated."""

OTHER_INSTANCE_PREFIX = "other-"
"""Prefix of the id of a collective instance; ids of processes have no hyphen."""


class VersionKey(NamedTuple):
    """Version of a model of a project."""

    project: int
    model: str
    version: str


class EnvironmentKey(NamedTuple):
    """Environment of a project, such as production."""

    project: int
    environment: str


class Source(NamedTuple):
    """Reporting instance, and the properties that decide which series its numbers join."""

    version: VersionKey
    instance: str
    environment: str
    gpu: str
    world_size: int


class RegionKey(NamedTuple):
    """Region, shape bucket, and compile mode of calls."""

    region: str
    bucket: str
    mode: str
    runtime: str
    outermost: bool


class StratumKey(NamedTuple):
    """Stratum: only calls of the same stratum are compared with each other."""

    project: int
    gpu: str
    mode: str
    runtime: str
    world_size: int


class SeriesKey(NamedTuple):
    """Series of a version's calls per minute."""

    version: VersionKey
    environment: str
    stratum: StratumKey
    region: str
    bucket: str
    outermost: bool


class GroupKey(NamedTuple):
    """Group of a version's process facts."""

    version: VersionKey
    environment: str
    gpu: str


class InstanceKey(NamedTuple):
    """One process with an agent."""

    project: int
    instance: str


class FindingKey(NamedTuple):
    """Group of similar events of a model."""

    project: int
    model: str
    kind: str
    fingerprint: str


def to_series_key(source: Source, place: RegionKey) -> SeriesKey:
    """Return the series of a source's calls at a place. The collective place `other` has one
    stratum."""
    if place.region == place.bucket == place.mode == OTHER:
        stratum = StratumKey(source.version.project, OTHER, OTHER, OTHER, 1)
        return SeriesKey(source.version, source.environment, stratum, OTHER, OTHER, place.outermost)
    stratum = StratumKey(
        source.version.project, source.gpu, place.mode, place.runtime, source.world_size
    )
    return SeriesKey(
        source.version, source.environment, stratum, place.region, place.bucket, place.outermost
    )


def to_group_key(source: Source) -> GroupKey:
    """Return the group of a source's process facts."""
    return GroupKey(source.version, source.environment, source.gpu)


def to_instance_key(source: Source) -> InstanceKey:
    """Return the instance of a source."""
    return InstanceKey(source.version.project, source.instance)
