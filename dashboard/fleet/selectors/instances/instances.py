"""Instances: the starts, eager fallbacks and configurations of the instances of versions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from dashboard.common.raw_queries import Rows, fetch_rows
from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import ColdStart, Instance
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.instances.role_filters import where_counted
from dashboard.ingest.models import Sender

MAX_INSTANCES = 400
Configuration = tuple[int, dict[str, Any], dict[str, Any]]
"""Version id, identity and components of an instance."""
_COLUMNS = [
    field.attname for field in Instance._meta.concrete_fields if field.name != "capabilities"
]
_START_COLUMNS = [field.attname for field in ColdStart._meta.concrete_fields]


@dataclass(frozen=True)
class ColdStartData:
    """One cold start in seconds.

    `until` is its end, `stages` are (name, begin, seconds) in order. `unaccounted` is the time
    outside all stages.
    """

    total: float
    until: str
    stages: list[tuple[str, float, float]]
    phases: dict[str, float]
    unaccounted: float | None
    told: bool = False
    """Whether the agent reported the stages; otherwise they are derived from its reports."""


@dataclass(frozen=True)
class InstanceData:
    """One instance as the pages need it."""

    id: int
    instance_id: str
    name: str
    version_id: int
    host: str
    gpu: str
    rank: int
    job: str
    state_minute: int
    started_minute: float
    cold_start: float | None
    latched_eager: list[dict[str, Any]]
    start: ColdStartData | None = None


def list_version_instances(
    *, project_id: int, version_ids: Collection[int], environment: str
) -> list[InstanceData]:
    """Return the counted instances of versions, the most recently seen first, with cold starts."""
    rows = Instance.objects.filter(
        where_counted(), project_id=project_id, version_id__in=version_ids, environment=environment
    )
    rows = rows.exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
    wanted = (
        rows.select_related("cold_start")
        .defer("identity", "capabilities", "components")
        .order_by("-last_minute", "pk")
    )
    return [_make_instance(row, getattr(row, "cold_start", None)) for row in wanted[:MAX_INSTANCES]]


@dataclass(frozen=True)
class ReportingInstance:
    """An instance, and its number of lost windows."""

    instance: Instance
    missing: int


def list_reporting_instances(
    *, project_id: int, model_id: int, environment: str, since: datetime
) -> list[ReportingInstance]:
    """Return the processes of a model that reported since a time, the newest first.

    Includes instances, starting processes and helper processes.
    """
    rows = Instance.objects.filter(
        project_id=project_id, model_id=model_id, environment=environment, last_seen_at__gte=since
    )
    mine = Sender.objects.filter(project_id=project_id, instance_id=OuterRef("instance_id"))
    found = (
        rows.exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
        .annotate(missing=Subquery(mine.values("missing")[:1]))
        .select_related("version")
        .defer("identity", "components")
        .order_by("-last_seen_at", "pk")
    )
    return [ReportingInstance(one, one.missing or 0) for one in found[:MAX_INSTANCES]]


def read_configured_instances(
    *, project_id: int, version_ids: Collection[int], environment: str
) -> tuple[list[InstanceData], list[Configuration]]:
    """Return the counted instances of versions, the most recently seen first, and their
    configurations; one query."""
    rows = query_configured_instances(
        project_id=project_id, version_ids=version_ids, environment=environment
    )
    return parse_configured_instances(fetch_rows(rows))


def query_configured_instances(
    *, project_id: int, version_ids: Collection[int], environment: str
) -> QuerySet[Any, Any]:
    """Query the rows that `parse_configured_instances` reads."""
    rows = Instance.objects.filter(
        where_counted(), project_id=project_id, version_id__in=version_ids, environment=environment
    )
    start = (f"cold_start__{name}" for name in _START_COLUMNS)
    return rows.order_by("-last_minute", "pk").values_list(*_COLUMNS, *start)[:MAX_INSTANCES]


def parse_configured_instances(rows: Rows) -> tuple[list[InstanceData], list[Configuration]]:
    """Return instances and configurations, the most recently seen first."""
    found = sorted(map(_make_rows, rows), key=lambda pair: (-pair[0].last_minute, pair[0].pk))
    named = [
        _make_instance(row, start)
        for row, start in found
        if not row.instance_id.startswith(OTHER_INSTANCE_PREFIX)
    ]
    return named, [(row.version_id, row.identity, row.components) for row, _ in found]


def _make_rows(values: tuple[Any, ...]) -> tuple[Instance, ColdStart | None]:
    own, start = values[: len(_COLUMNS)], values[len(_COLUMNS) :]
    return Instance.from_db(None, _COLUMNS, own), (
        ColdStart.from_db(None, _START_COLUMNS, start) if start[0] is not None else None
    )


def _make_instance(row: Instance, start: ColdStart | None) -> InstanceData:
    latched = (
        [frame for frame in row.latched_eager if isinstance(frame, dict)]
        if isinstance(row.latched_eager, list)
        else []
    )
    return InstanceData(
        row.pk,
        row.instance_id,
        process_name(row),
        row.version_id,
        row.host,
        row.gpu,
        row.rank,
        row.job,
        row.last_minute,
        row.started_at.timestamp() / 60,
        start.total if start else None,
        latched,
        make_cold_start(start) if start else None,
    )


def make_cold_start(row: ColdStart) -> ColdStartData | None:
    """Return the cold start from the agent's stages, or from two stages derived from its
    reports."""
    if row.total is None:
        return None
    said = row.phases if isinstance(row.phases, dict) else {}
    if "stages" in said:
        stages = [
            (str(name), float(begin), float(seconds)) for name, begin, seconds in said["stages"]
        ]
        return ColdStartData(
            row.total,
            str(said.get("until", "")),
            stages,
            dict(said.get("phases", {})),
            row.unaccounted,
            told=True,
        )
    before, compiling = said.get("before_compiling"), said.get("compiling")
    stages = []
    if before is not None and compiling is not None:
        stages = [
            ("before compiling", 0.0, float(before)),
            ("compile", float(before), float(compiling)),
        ]
    return ColdStartData(
        row.total, "ready" if row.ready_at else "first call", stages, {}, row.unaccounted
    )
