"""Dimension ids: ids of models, versions, strata and series, created if new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.keys import InstanceKey, SeriesKey, StratumKey, VersionKey, to_series_key
from dashboard.fleet.models import ModelVersion, Series, Stratum, WatchedModel

ModelKey = tuple[int, str]
SeriesColumns = tuple[int, str, int, str, str, bool]
"""Version id, environment, stratum id, region, shape bucket, and whether outermost."""
_SERIES_COLUMNS = ("version_id", "environment", "stratum_id", "region", "bucket", "outermost")


@dataclass
class DimensionIds:
    """Database ids by natural key, for one fold."""

    models: dict[ModelKey, int] = field(default_factory=dict)
    versions: dict[VersionKey, int] = field(default_factory=dict)
    strata: dict[StratumKey, int] = field(default_factory=dict)
    series: dict[SeriesKey, int] = field(default_factory=dict)
    series_minutes: dict[int, int] = field(default_factory=dict)
    """Newest stored minute of each series."""
    instances: dict[InstanceKey, int] = field(default_factory=dict)
    new_instances: set[int] = field(default_factory=set)
    """Instances created by this fold; they have no other rows yet."""
    active: dict[InstanceKey, int | None] = field(default_factory=dict)
    """First minute that counts, by instance; None while it only starts or helps."""
    woken: dict[InstanceKey, tuple[int, int | None]] = field(default_factory=dict)
    """Instances with an earlier first minute than stored: the new minute, and the stored one."""


def resolve_ids(facts: Facts) -> DimensionIds:
    """Return the ids of all entities in the facts except instances.

    New entities are inserted in key order, so that concurrent workers cannot deadlock.
    """
    ids = DimensionIds()
    _models_find(ids, facts)
    _versions_find(ids, facts)
    keys = sorted(
        {
            to_series_key(source, place)
            for table in (facts.minutes, facts.hours)
            for source, place, _ in table
        }
    )
    _strata_find(ids, sorted({key.stratum for key in keys}))
    _series_find(ids, keys)
    return ids


def to_datetime(seconds: float) -> datetime:
    """Convert Unix seconds to a UTC datetime."""
    return datetime.fromtimestamp(seconds, UTC)


def _models_find(ids: DimensionIds, facts: Facts) -> None:
    seen: dict[ModelKey, tuple[float, float]] = {}
    for version, (first, last) in facts.seen.items():
        key = (version.project, version.model)
        known = seen.get(key, (first, last))
        seen[key] = (min(first, known[0]), max(last, known[1]))

    def read() -> None:
        found = WatchedModel.objects.filter(
            project_id__in={p for p, _ in seen}, name__in={n for _, n in seen}
        )
        ids.models.update(
            {
                (project, name): id
                for id, project, name in found.values_list("id", "project_id", "name")
            }
        )

    read()
    missing = [key for key in sorted(seen) if key not in ids.models]
    if missing:
        WatchedModel.objects.bulk_create(
            [
                WatchedModel(
                    project_id=p,
                    name=n,
                    first_seen_at=to_datetime(seen[p, n][0]),
                    last_seen_at=to_datetime(seen[p, n][1]),
                )
                for p, n in missing
            ],
            ignore_conflicts=True,
        )
        read()


def _versions_find(ids: DimensionIds, facts: Facts) -> None:
    wanted = {(ids.models[key.project, key.model], key.version): key for key in sorted(facts.seen)}

    def read() -> None:
        found = ModelVersion.objects.filter(
            model_id__in={model for model, _ in wanted}, name__in={name for _, name in wanted}
        )
        for id, model, name in found.values_list("id", "model_id", "name"):
            if (model, name) in wanted:
                ids.versions[wanted[model, name]] = id

    read()
    missing = [(model, key) for (model, _), key in wanted.items() if key not in ids.versions]
    if missing:
        ModelVersion.objects.bulk_create(
            [
                ModelVersion(
                    project_id=key.project,
                    model_id=model,
                    name=key.version,
                    first_seen_at=to_datetime(facts.seen[key][0]),
                    last_seen_at=to_datetime(facts.seen[key][1]),
                )
                for model, key in missing
            ],
            ignore_conflicts=True,
        )
        read()


def _strata_find(ids: DimensionIds, wanted: list[StratumKey]) -> None:
    def read() -> None:
        found = Stratum.objects.filter(
            project_id__in={key.project for key in wanted}, gpu__in={key.gpu for key in wanted}
        )
        for id, project, gpu, mode, runtime, size in found.values_list(
            "id", "project_id", "gpu", "mode", "runtime", "world_size"
        ):
            ids.strata[StratumKey(project, gpu, mode, runtime, size)] = id

    read()
    missing = [key for key in wanted if key not in ids.strata]
    if missing:
        Stratum.objects.bulk_create(
            [
                Stratum(
                    project_id=k.project,
                    gpu=k.gpu,
                    mode=k.mode,
                    runtime=k.runtime,
                    world_size=k.world_size,
                )
                for k in missing
            ],
            ignore_conflicts=True,
        )
        read()


def _series_find(ids: DimensionIds, keys: Iterable[SeriesKey]) -> None:
    """Find or create series.

    No other code creates series, and `limit_facts` enforces their limit before this call.
    """
    wanted = {_series_columns(ids, key): key for key in keys}
    _series_read(ids, wanted)
    missing = [(columns, key) for columns, key in wanted.items() if key not in ids.series]
    if missing:
        Series.objects.bulk_create(
            [
                Series(
                    project_id=key.version.project,
                    **dict(zip(_SERIES_COLUMNS, columns, strict=True)),
                )
                for columns, key in missing
            ],
            ignore_conflicts=True,
        )
        _series_read(ids, wanted)


def _series_columns(ids: DimensionIds, key: SeriesKey) -> SeriesColumns:
    return (
        ids.versions[key.version],
        key.environment,
        ids.strata[key.stratum],
        key.region,
        key.bucket,
        key.outermost,
    )


def _series_read(ids: DimensionIds, wanted: Mapping[SeriesColumns, SeriesKey]) -> None:
    """Store the ids and newest minutes of existing series in `ids`."""
    found = Series.objects.filter(
        version_id__in={columns[0] for columns in wanted},
        region__in={columns[3] for columns in wanted},
    )
    for id, last_minute, *columns in found.values_list("id", "last_minute", *_SERIES_COLUMNS):
        if (key := wanted.get(tuple(columns))) is not None:
            ids.series[key], ids.series_minutes[id] = id, last_minute
