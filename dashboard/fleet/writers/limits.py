"""Limits: admits new entities up to a project's limits and moves the rest to `other`.

Most folds contain known entities only and need no query.

1. New keys are checked under a lock of their project and kind, held until the fold commits.
2. Keys over the limit are renamed to `other`, and the overflow counter of the day increases.
3. A fold that adds to `other` holds the same lock, so that no concurrent update of `other` is lost.

Invariant: locks are taken in the order of KINDS, then projects, before the fold writes any row. Two
folds therefore cannot deadlock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import F

from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.keys import OTHER, EnvironmentKey, VersionKey, to_series_key
from dashboard.fleet.fold.overflow import (
    OverflowNames,
    rename_findings,
    rename_series,
    rename_sources,
)
from dashboard.fleet.models import LimitReached, WatchedModel
from dashboard.fleet.models.limits import COUNTER
from dashboard.fleet.writers import limit_usage
from dashboard.fleet.writers.dimension_ids import to_datetime
from dashboard.projects.cardinality_limits import read_limits
from dashboard.projects.models import Project

_LOCK_CLASS = 0x43574C00
"""Separates these advisory locks from others in the same database; the kind's number is added."""

MAX_KNOWN_KEYS, KNOWN_TTL_S = 200_000, 3600.0

Key = Any
"""Natural key of a limited entity: EnvironmentKey, VersionKey, InstanceKey, SeriesKey or
FindingKey."""


@dataclass
class LimitKind:
    """Kind of limited entity: functions that find existing keys, count used ones, and describe a
    key."""

    name: str
    number: int
    existing: Callable[[Collection[Key]], set[Key]]
    used: Callable[[int, float], int]
    word: Callable[[Key], str]
    project: Callable[[Key], int]
    known: set[Key] = field(default_factory=set)
    since: float = 0.0

    def unknown(self, keys: Iterable[Key]) -> list[Key]:
        """Return the keys without a row.

        Known keys are cached and queried again after KNOWN_TTL_S.
        """
        if len(self.known) > MAX_KNOWN_KEYS or time.monotonic() - self.since > KNOWN_TTL_S:
            self.known, self.since = set(), time.monotonic()
        missing = [key for key in keys if key not in self.known]
        if missing:
            self.known |= self.existing(missing)
        return [key for key in missing if key not in self.known]


ENVIRONMENT = LimitKind(
    "environment",
    4,
    limit_usage.find_existing_environments,
    limit_usage.count_used_environments,
    lambda key: key.environment,
    lambda key: key.project,
)
VERSION = LimitKind(
    "version",
    0,
    limit_usage.find_existing_versions,
    limit_usage.count_used_versions,
    lambda key: key.version,
    lambda key: key.project,
)
INSTANCE = LimitKind(
    "instance",
    1,
    limit_usage.find_existing_instances,
    limit_usage.count_used_instances,
    lambda key: key.instance,
    lambda key: key.project,
)
SERIES = LimitKind(
    "series",
    2,
    limit_usage.find_existing_series,
    limit_usage.count_used_series,
    lambda key: f"{key.region} {key.bucket}",
    lambda key: key.version.project,
)
FINDING = LimitKind(
    "finding",
    3,
    limit_usage.find_existing_findings,
    limit_usage.count_used_findings,
    lambda key: key.kind,
    lambda key: key.project,
)
KINDS = (ENVIRONMENT, VERSION, INSTANCE, SERIES, FINDING)


def record_saturation(saturated: Iterable[tuple[int, str]], *, now: float) -> None:
    """Count rows with a saturated counter by project and counter, for the Health page."""
    found: dict[int, list[str]] = {}
    for project, word in saturated:
        found.setdefault(project, []).append(word)
    for project, words in sorted(found.items()):
        _count_overflow(COUNTER, project, words, now)


def clear_known_keys() -> None:
    """Clear the caches, as a restart does."""
    for kind in KINDS:
        kind.known = set()


def limit_facts(facts: Facts, *, now: float) -> Facts:
    """Return the facts with entities over the limits moved to `other`."""
    environments = _find_overflow(
        ENVIRONMENT,
        {
            EnvironmentKey(version.project, name)
            for version, name in facts.presence
            if name != OTHER
        },
        now,
    )
    versions, instances = (
        _find_overflow(VERSION, facts.seen, now),
        _find_overflow(INSTANCE, facts.instances, now),
    )
    if environments or versions or instances:
        facts = rename_sources(
            facts, OverflowNames(_map_versions_to_other(facts, versions), instances, environments)
        )
    if series := _find_overflow(
        SERIES,
        {
            to_series_key(source, place)
            for table in (facts.minutes, facts.hours)
            for source, place, _ in table
        },
        now,
    ):
        facts = rename_series(facts, series)
    if findings := _find_overflow(FINDING, facts.findings, now):
        facts = rename_findings(facts, findings)
    return facts


def _find_overflow(kind: LimitKind, keys: Collection[Key], now: float) -> set[Key]:
    """Return the new keys over the limit.

    A version that a job itself names `other` shares rows with the collective version, so it needs
    the lock too.
    """
    missing = kind.unknown(keys)
    shared = [key for key in keys if key.version == OTHER] if kind is VERSION else []
    refused: set[Key] = set()
    for project in sorted({kind.project(key) for key in (*missing, *shared)}):
        _lock(kind, project)
        mine = [key for key in missing if kind.project(key) == project and key not in shared]
        fresh = sorted(set(mine) - kind.existing(mine)) if mine else []
        if not fresh:
            continue
        limit = getattr(
            read_limits(Project.objects.values_list("settings", flat=True).get(pk=project)),
            kind.name,
        )
        over = fresh[max(0, limit - kind.used(project, now)) :]
        if over:
            _count_overflow(kind.name, project, [kind.word(key) for key in over], now)
            refused.update(over)
    return refused


def _map_versions_to_other(
    facts: Facts, refused: Collection[VersionKey]
) -> dict[VersionKey, VersionKey]:
    """Map refused versions to `other` of their model.

    A model without an admitted version becomes `other` as well.
    """
    models = set(
        WatchedModel.objects.filter(project_id__in={key.project for key in refused}).values_list(
            "project_id", "name"
        )
    )
    models |= {(key.project, key.model) for key in facts.seen if key not in refused}
    return {
        key: VersionKey(
            key.project, key.model if (key.project, key.model) in models else OTHER, OTHER
        )
        for key in refused
    }


def _lock(kind: LimitKind, project: int) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK_CLASS + kind.number, project]
            )


def _count_overflow(kind: str, project: int, words: list[str], now: float) -> None:
    row, _ = LimitReached.objects.get_or_create(
        project_id=project, kind=kind, day=int(now // 86400), defaults={"last_at": to_datetime(now)}
    )
    LimitReached.objects.filter(pk=row.pk).update(
        count=F("count") + len(words), example=words[-1][:200], last_at=to_datetime(now)
    )
