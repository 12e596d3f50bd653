"""Endpoints of findings and instances."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef
from ninja import Query, Router
from pydantic import Field

from dashboard.api.read.auth import ReadRequest
from dashboard.api.read.instance_schemas import (
    Findings,
    FindingShape,
    Instances,
    InstanceShape,
    SeenShape,
)
from dashboard.api.read.models_versions import READ_METHODS, get_model_or_404
from dashboard.api.read.paging import PageQuery, paginate_rows
from dashboard.api.read.schemas import MAX_ID, Id, Slug
from dashboard.common import clock
from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.fold.roles import is_counted
from dashboard.fleet.models import Finding, FindingVersion, Instance
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.findings.findings import FindingData, list_version_findings
from dashboard.fleet.selectors.instances.instance_states import (
    eager_share,
    has_ended,
    instance_state,
    list_missing_capabilities,
)
from dashboard.projects.selectors import for_project

router = Router(tags=["Findings and instances"])


class FindingsQuery(PageQuery):
    environment: str = Field("production", max_length=64)
    version: int | None = Field(None, ge=1, le=MAX_ID, description="Only findings of this version.")
    kind: str = Field(
        "",
        max_length=32,
        description="graph_break, guard, fallback, cache_miss, cudagraph_skip, compile_error, ...",
    )


class InstancesQuery(PageQuery):
    environment: str = Field("", max_length=64)
    model: int | None = Field(None, ge=1, le=MAX_ID)
    version: int | None = Field(None, ge=1, le=MAX_ID)
    minutes: int = Field(
        30,
        ge=1,
        le=400 * 1440,
        description="Only instances that reported within this number of minutes.",
    )


@router.api_operation(
    READ_METHODS,
    "/projects/{project}/models/{model_id}/findings",
    response=Findings,
    summary="Findings of a model",
)
def findings_list(
    request: ReadRequest, project: Slug, model_id: Id, asked: Query[FindingsQuery]
) -> Findings:
    """Lists groups of equal events, newest first, with the counts of each version."""
    model = get_model_or_404(request.auth.project(project), model_id)
    seen = FindingVersion.objects.filter(finding=OuterRef("pk"), environment=asked.environment)
    seen = seen.filter(version_id=asked.version) if asked.version else seen
    rows = for_project(Finding, model.project_id).filter(Exists(seen), model=model)
    found, after = paginate_rows(rows.filter(kind=asked.kind) if asked.kind else rows, asked)
    ids = [row.pk for row in found]
    facts = list_version_findings(
        project_id=model.project_id,
        model_id=model.pk,
        version_ids=None,
        environment=asked.environment,
        finding_ids=ids,
    )
    by_id = {one.id: one for one in facts}
    return Findings(
        environment=asked.environment,
        items=[_finding(by_id[id]) for id in ids if id in by_id],
        next=after,
    )


@router.api_operation(
    READ_METHODS, "/projects/{project}/instances", response=Instances, summary="Instances"
)
def instances_list(request: ReadRequest, project: Slug, asked: Query[InstancesQuery]) -> Instances:
    """Lists processes that report, newest first, with their current state."""
    now = clock.now()
    rows = for_project(Instance, request.auth.project(project)).filter(
        last_seen_at__gte=now - timedelta(minutes=asked.minutes)
    )
    rows = (
        rows.exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
        .select_related("version", "cold_start")
        .defer("identity", "components")
    )
    wanted = {
        "environment": asked.environment,
        "model_id": asked.model,
        "version_id": asked.version,
    }
    found, after = paginate_rows(
        rows.filter(**{name: value for name, value in wanted.items() if value}), asked
    )
    return Instances(items=[_instance(row, now) for row in found], next=after)


def _finding(facts: FindingData) -> FindingShape:
    life = facts.life
    return FindingShape(
        id=facts.id,
        kind=facts.kind,
        text=facts.text,
        where=facts.where,
        state=life.state if life else None,
        state_since=clock.at_minute(life.since_minute) if life else None,
        certain=facts.certain,
        first_version=life.first_version if life else None,
        last_version=life.last_version if life else None,
        values=facts.values,
        distinct=facts.distinct,
        pattern=facts.pattern,
        versions=[
            SeenShape(
                version_id=id,
                count=seen.count,
                instances=seen.instances,
                first_seen_at=seen.first_seen_at,
                last_seen_at=seen.last_seen_at,
                seconds=seen.seconds,
            )
            for id, seen in facts.versions.items()
        ],
    )


_COPIED_FIELDS = (
    *(
        "instance_id",
        "model_id",
        "version_id",
        "environment",
        "kind",
        "host",
        "node",
        "job",
        "rank",
        "world_size",
        "gpu",
        "torch",
        "agent",
    ),
    *("label", "role", "pid"),
    *("started_at", "ready_at", "last_seen_at", "simulated"),
    *("merged_windows", "truncated_events", "spool_errors", "internal_errors", "rejected_windows"),
)


def _instance(row: Instance, now: datetime) -> InstanceShape:
    start = getattr(row, "cold_start", None)
    read = {
        "id": row.pk,
        "version": row.version.name,
        "name": process_name(row),
        "state": instance_state(row, now).value,
        "counted": is_counted(row),
        "ended_at": row.ended_at if has_ended(row) else None,
        "exit_code": row.exit_code if has_ended(row) else None,
        "exit_signal": row.exit_signal if has_ended(row) else "",
        "blind_to": list_missing_capabilities(row),
        "capabilities": row.capabilities if isinstance(row.capabilities, dict) else {},
        "cold_start_seconds": start.total if start else None,
        "compiling_for_seconds": row.compiling_for,
        "eager_share": eager_share(row),
        "latched_frames": len(row.latched_eager) if isinstance(row.latched_eager, list) else 0,
        "clock_offset_seconds": row.clock_offset,
    }
    return InstanceShape.model_validate(
        {name: getattr(row, name) for name in _COPIED_FIELDS} | read
    )
