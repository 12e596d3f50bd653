"""Version writer: updates models, versions, series and deployments after a fold."""

from __future__ import annotations

from datetime import datetime

from dashboard.fleet.fold.facts import Facts, Span
from dashboard.fleet.fold.keys import VersionKey, to_series_key
from dashboard.fleet.fold.live_spans import GONE_AFTER_MINUTES, MAX_AHEAD_MINUTES, spans_join
from dashboard.fleet.models import Deployment, ModelVersion, Series, WatchedModel
from dashboard.fleet.signals import deployments_joined
from dashboard.fleet.writers.bulk_upsert import Table, rows_update
from dashboard.fleet.writers.dimension_ids import DimensionIds, to_datetime

VERSION_TABLE = Table(
    ModelVersion,
    ("id",),
    ("id", "revision", "first_seen_at", "last_seen_at", "last_minute", "late_folds"),
    added=frozenset({"revision", "late_folds"}),
    largest=frozenset({"last_seen_at", "last_minute"}),
    smallest=frozenset({"first_seen_at"}),
)
SERIES_TABLE = Table(Series, ("id",), ("id", "last_minute"), largest=frozenset({"last_minute"}))
MODEL_TABLE = Table(
    WatchedModel,
    ("id",),
    ("id", "first_seen_at", "last_seen_at"),
    largest=frozenset({"last_seen_at"}),
    smallest=frozenset({"first_seen_at"}),
)
DEPLOYMENT_TABLE = Table(Deployment, ("id",), ("id", "last_minute"))


def versions_store(facts: Facts, ids: DimensionIds, *, late_before: int) -> None:
    """Increase the revision of each version.

    Data of minutes before `late_before` is late, and makes the judge rebuild its comparisons.
    """
    rows = []
    for key, (since, until) in facts.seen.items():
        first, last = facts.changed.get(key, (late_before, 0))
        rows.append(
            (
                ids.versions[key],
                1,
                to_datetime(since),
                to_datetime(until),
                last,
                int(first < late_before),
            )
        )
    rows_update(VERSION_TABLE, rows)


def series_store(facts: Facts, ids: DimensionIds) -> None:
    """Update the newest minute of each series, which distinguishes live series from inactive
    ones."""
    newest: dict[int, int] = {}
    for table, length in ((facts.minutes, 1), (facts.hours, 60)):
        for source, place, at in table:
            id = ids.series[to_series_key(source, place)]
            newest[id] = max(at * length, newest.get(id, 0))
    rows_update(
        SERIES_TABLE,
        [(id, minute) for id, minute in newest.items() if minute > ids.series_minutes[id]],
    )


def models_store(facts: Facts, ids: DimensionIds) -> None:
    """Extend the first and last time of each model.

    Folds of several versions share the row of their model, so it is written last.
    """
    seen: dict[int, tuple[datetime, datetime]] = {}
    for key, (since, until) in facts.seen.items():
        id, first, last = ids.models[key.project, key.model], to_datetime(since), to_datetime(until)
        known = seen.get(id, (first, last))
        seen[id] = (min(first, known[0]), max(last, known[1]))
    # Lock the rows in order first: an update of several rows guarantees no order, and two folds
    # must not deadlock.
    list(
        WatchedModel.objects.select_for_update()
        .filter(id__in=seen)
        .order_by("id")
        .values_list("id")
    )
    rows_update(MODEL_TABLE, [(id, first, last) for id, (first, last) in seen.items()])
    simulated = {ids.models[key.project, key.model] for key in facts.simulated}
    if simulated:
        WatchedModel.objects.filter(id__in=simulated, simulated=False).update(simulated=True)


def deployments_store(facts: Facts, ids: DimensionIds, *, now_minute: int) -> None:
    """Start, extend, join and end the deployments of each version and environment in the facts."""
    known: dict[tuple[int, str], list[Deployment]] = {}
    versions = {ids.versions[version] for version, _ in facts.presence}
    for row in Deployment.objects.filter(version_id__in=versions, last_minute__gte=0).order_by(
        "started_minute"
    ):
        known.setdefault((row.version_id, row.environment), []).append(row)
    lengthened = []
    for (version, environment), spans in sorted(facts.presence.items()):
        rows = known.get((ids.versions[version], environment), [])
        joined = spans_join([*((row.started_minute, row.last_minute) for row in rows), *spans])
        if _only_lengthens(rows, joined, now_minute):
            lengthened.append((rows[-1].pk, joined[-1][1]))
        else:
            _deployments_store(ids, version, environment, rows, joined, now_minute)
    rows_update(DEPLOYMENT_TABLE, lengthened)


def _only_lengthens(rows: list[Deployment], joined: list[Span], now_minute: int) -> bool:
    """Return whether the fold only extends the newest deployment, which remains live. Nearly all
    folds do."""
    if (
        not rows
        or rows[-1].ended_minute is not None
        or now_minute - joined[-1][1] > GONE_AFTER_MINUTES
        or len(rows) != len(joined)
    ):
        return False
    before = all(
        (row.started_minute, row.last_minute) == span
        for row, span in zip(rows[:-1], joined[:-1], strict=True)
    )
    return before and rows[-1].started_minute == joined[-1][0]


def _deployments_store(
    ids: DimensionIds,
    version: VersionKey,
    environment: str,
    known: list[Deployment],
    joined: list[Span],
    now_minute: int,
) -> None:
    kept: list[Deployment] = []
    for first, last in joined:
        inside = [row for row in known if first <= row.started_minute <= last]
        # Data in the gap between two deployments shows that they are one. The newest row remains,
        # because the judge evaluates it.
        row = inside[-1] if inside else _build_deployment(ids, version, environment)
        for other in inside[:-1]:
            deployments_joined.send(Deployment, gone=other, kept=row)
            other.delete()
        row.started_minute, row.last_minute = first, last
        kept.append(row)
    kept = _drop_ahead(kept, now_minute)
    for row in kept:
        gone = row is not kept[-1] or now_minute - row.last_minute > GONE_AFTER_MINUTES
        row.ended_minute = row.last_minute if gone else None
        row.save()


def _drop_ahead(kept: list[Deployment], now_minute: int) -> list[Deployment]:
    """Remove deployments that a wrong clock started in the future.

    They belong to the current deployment, which inherits their references.
    """
    begun = [row for row in kept if row.started_minute <= now_minute + MAX_AHEAD_MINUTES]
    if not begun:
        return kept
    ahead = [row for row in kept[len(begun) :] if row.pk is not None]
    if ahead and begun[-1].pk is None:
        begun[-1].save()
    for other in ahead:
        deployments_joined.send(Deployment, gone=other, kept=begun[-1])
        other.delete()
    return begun


def _build_deployment(ids: DimensionIds, version: VersionKey, environment: str) -> Deployment:
    return Deployment(
        project_id=version.project,
        model_id=ids.models[version.project, version.model],
        version_id=ids.versions[version],
        environment=environment,
    )
