"""The natural keys that facts are counted under, before any database id exists."""

from __future__ import annotations

from typing import NamedTuple

OTHER = "other"
"""What stands for everything that there is no room for; never judged."""

OTHER_INSTANCE_PREFIX = "other-"
"""How the id of an instance begins that stands for many; ids of processes have no hyphen."""


class VersionKey(NamedTuple):
    """A version of a model of a project."""

    project: int
    model: str
    version: str


class EnvironmentKey(NamedTuple):
    """Where a project runs something, such as production."""

    project: int
    environment: str


class Source(NamedTuple):
    """Who reports: one instance, with what decides where its numbers are added up."""

    version: VersionKey
    instance: str
    environment: str
    gpu: str
    world_size: int


class RegionKey(NamedTuple):
    """Which calls: a region, its shape bucket, and how it is compiled."""

    region: str
    bucket: str
    mode: str
    runtime: str
    outermost: bool


class StratumKey(NamedTuple):
    """What may be compared with each other."""

    project: int
    gpu: str
    mode: str
    runtime: str
    world_size: int


class SeriesKey(NamedTuple):
    """What a minute of calls of a version is counted under."""

    version: VersionKey
    environment: str
    stratum: StratumKey
    region: str
    bucket: str
    outermost: bool


class GroupKey(NamedTuple):
    """What the process facts of a version are added up under."""

    version: VersionKey
    environment: str
    gpu: str


class InstanceKey(NamedTuple):
    """One process with an agent."""

    project: int
    instance: str


class FindingKey(NamedTuple):
    """A group of like events of a model."""

    project: int
    model: str
    kind: str
    fingerprint: str


def to_series_key(source: Source, place: RegionKey) -> SeriesKey:
    """The series that calls of a source at a place belong to; `other` has one stratum, whatever
    went into it."""
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
    """The group that process facts of a source belong to."""
    return GroupKey(source.version, source.environment, source.gpu)


def to_instance_key(source: Source) -> InstanceKey:
    """The instance behind a source."""
    return InstanceKey(source.version.project, source.instance)
