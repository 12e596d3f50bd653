"""What a fold says of models, versions, series and deployments: when they were seen, and what
changed for the judge."""

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
    """Raises the revision of each version; minutes before `late_before` come late and have the
    judge build its comparisons anew."""
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
    """Notes the newest minute of each series, by which live ones are told from dead ones."""
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
    """Widens when a model was seen. Versions of a model fold side by side and share this row, so it
    comes last."""
    seen: dict[int, tuple[datetime, datetime]] = {}
    for key, (since, until) in facts.seen.items():
        id, first, last = ids.models[key.project, key.model], to_datetime(since), to_datetime(until)
        known = seen.get(id, (first, last))
        seen[id] = (min(first, known[0]), max(last, known[1]))
    # Locked in order first: an update of many rows promises none, and two folds must not wait for
    # each other.
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
    """Opens, lengthens, joins and ends the deployments of each version and environment that the
    facts have data of."""
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
    """Whether all that is new is the end of the newest deployment, which is live and stays so: so
    it is with nearly every fold."""
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
        # Data that closes the gap between two deployments shows that they were one: the newest row
        # stays, as it is the one being judged.
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
    """A clock that was ahead began deployments that have not begun: the one of now is the same
    traffic, and gets what was said of them."""
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
