"""Endpoints of projects, models and versions."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from ninja import Query, Router, Schema
from pydantic import Field

from dashboard.alerts.current_verdict import resolve_current_verdicts
from dashboard.api.read.auth import ReadRequest
from dashboard.api.read.paging import PageQuery, paginate_rows
from dashboard.api.read.schemas import (
    Figures,
    Id,
    Models,
    ModelShape,
    OneModel,
    Projects,
    ProjectShape,
    Quota,
    Slug,
    Versions,
    VersionShape,
)
from dashboard.api.read.serializers import deployment_shape, span_shape, verdict_shape
from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.budgets import DEFAULT_STALLED_SHARE, find_budget_sources, resolve_budgets
from dashboard.fleet.metrics.aggregate import (
    CallTotals,
    Clock,
    ProcessTotals,
    all_report_stalls,
    choose_clock,
    sum_calls,
)
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.metrics.metric_names import list_metrics
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.retention import find_first_kept_minute
from dashboard.fleet.selectors.versions.comparison_spans import needs_hours
from dashboard.fleet.selectors.versions.eager_causes import parse_eager_causes, query_eager_causes
from dashboard.fleet.selectors.versions.version_series import (
    CallPoint,
    ProcessPoint,
    Span,
    list_scraped_versions,
    parse_call_points,
    query_calls,
    read_outermost_series,
    read_process_points,
    read_region_seconds,
)
from dashboard.fleet.selectors.versions.versions import find_model, list_model_deployments
from dashboard.projects.models import Project
from dashboard.projects.rate_limit import read_rate, read_waiting_limit
from dashboard.projects.selectors import for_project
from dashboard.regressions.selectors import read_latest_verdicts

READ_METHODS = ["GET", "HEAD"]
MAX_VERSIONS = 12
BUDGET_FIELDS = {
    "cold_start": "cold_start_budget_seconds",
    "served": "served_budget_share",
    "stalled": "stalled_budget_share",
}
router = Router(tags=["Models"])


class ModelsQuery(PageQuery):
    name: str = Field("", max_length=200, description="Only the model with this name.")


class VersionsQuery(Schema):
    environment: str = Field("production", max_length=64)
    region: str = Field("", max_length=200, description="Default: the busiest region.")
    minutes: int = Field(
        60,
        ge=1,
        le=1440,
        description="Length of the span that the metrics of a version cover.",
    )
    limit: int = Field(
        MAX_VERSIONS, ge=1, le=MAX_VERSIONS, description="Maximum number of versions, newest first."
    )


@router.api_operation(READ_METHODS, "/projects", response=Projects, summary="Readable projects")
def projects_list(request: ReadRequest) -> Projects:
    """Lists the project of a key, or all projects of a signed-in user."""
    return Projects(items=[_project(project) for project in request.auth.projects()])


@router.api_operation(READ_METHODS, "/projects/{project}/models", response=Models, summary="Models")
def models_list(request: ReadRequest, project: Slug, asked: Query[ModelsQuery]) -> Models:
    """Lists models in the order of their first report."""
    rows = for_project(WatchedModel, request.auth.project(project)).select_related("project")
    rows = rows.filter(name=asked.name) if asked.name else rows
    found, after = paginate_rows(rows, asked, newest_first=False)
    return Models(items=[_model(row) for row in found], next=after)


@router.api_operation(
    READ_METHODS, "/projects/{project}/models/{model_id}", response=OneModel, summary="One model"
)
def model_one(request: ReadRequest, project: Slug, model_id: Id) -> OneModel:
    """Returns one model with the environments of its deployments."""
    model = get_model_or_404(request.auth.project(project), model_id)
    deployments = list_model_deployments(project_id=model.project_id, model_id=model.pk)
    return OneModel(
        **_model(model).dict(), environments=sorted({row.environment for row in deployments})
    )


@router.api_operation(
    READ_METHODS,
    "/projects/{project}/models/{model_id}/versions",
    response=Versions,
    summary="Versions of a model",
)
def versions_list(
    request: ReadRequest, project: Slug, model_id: Id, asked: Query[VersionsQuery]
) -> Versions:
    """Lists the newest versions of an environment with deployments, verdict and metrics."""
    owner = request.auth.project(project)
    model = get_model_or_404(owner, model_id)
    here = group_deployments_by_version(model, asked.environment, asked.limit)
    spans = {id: _last_span(rows[0], asked.minutes) for id, rows in here.items()}
    rows = read_version_rows(owner, asked.environment, asked.region, spans)
    verdicts = {
        row.deployment_id: row
        for row in resolve_current_verdicts(
            read_latest_verdicts(project=owner).filter(deployment__model=model)
        )
    }
    items = []
    for id, deployments in here.items():
        version, verdict = deployments[0].version, verdicts.get(deployments[0].pk)
        items.append(
            VersionShape(
                id=id,
                name=version.name,
                first_seen_at=version.first_seen_at,
                last_seen_at=version.last_seen_at,
                deployments=[deployment_shape(row) for row in deployments],
                verdict=verdict_shape(verdict) if verdict else None,
                span=span_shape(spans[id]),
                region=rows.region,
                figures=rows.figures(id),
            )
        )
    return Versions(environment=asked.environment, clock=rows.clock, items=items)


def get_model_or_404(project: Project, model_id: int) -> WatchedModel:
    """The model with this ID. Raises Http404 if the model is not in the project."""
    model = find_model(project_id=project.pk, model_id=model_id)
    if model is None:
        raise Http404("Model not found in this project.")
    return model


def group_deployments_by_version(
    model: WatchedModel, environment: str, most: int
) -> dict[int, list[Deployment]]:
    """The newest versions of an environment, each with its deployments, newest first."""
    found: dict[int, list[Deployment]] = {}
    for row in list_model_deployments(project_id=model.project_id, model_id=model.pk):
        if row.environment == environment:
            found.setdefault(row.version_id, []).append(row)
    return dict(list(found.items())[:most])


class VersionRows:
    """Rows of several versions in one region, each version over its own span."""

    def __init__(
        self,
        region: str,
        regions: dict[str, float],
        calls: list[CallPoint],
        processes: list[ProcessPoint],
        clock: str,
        why_eager: dict[int, EagerBreakdown],
    ) -> None:
        self.region, self.regions, self.calls, self.processes, self.why_eager = (
            region,
            regions,
            calls,
            processes,
            why_eager,
        )
        self.clock: Clock = (
            "wall" if clock == "wall" else "gpu" if clock == "gpu" else choose_clock(calls)
        )
        self.callers = all_report_stalls(calls)

    def figures(self, version_id: int) -> Figures:
        """The metrics of one version, over its whole span."""
        mine = [row for row in self.calls if row.version_id == version_id]
        calls: CallTotals | None = sum_calls(mine, self.clock, self.callers) if mine else None
        processes: ProcessTotals | None = None
        for row in self.processes:
            if row.version_id == version_id and row.instances:
                processes = processes or ProcessTotals()
                processes.add(row)
        why = self.why_eager.get(version_id)
        counted: dict[str, Any] = {
            "calls": calls.calls if calls else None,
            "instances": processes.instances if processes else None,
        }
        counted |= (
            {"warm_up_calls": calls.warmup, "with_stalled_calls": calls.callers} if calls else {}
        )
        counted["why_eager"] = why.as_dict() if why else None
        return Figures.model_validate(counted | list_metrics(calls, processes))


def read_version_rows(
    project: Project,
    environment: str,
    region: str,
    spans: dict[int, Span],
    *,
    hourly: bool | None = None,
    clock_asked: str = "",
) -> VersionRows:
    """Reads the rows in four queries. Without a region, the busiest region is read."""
    if not spans:
        return VersionRows("", {}, [], [], clock_asked, {})
    if hourly is None:
        hourly = needs_hours(
            spans.values(), kept_from=find_first_kept_minute(project=project, now=clock.unix())
        )
    series = read_outermost_series(
        project_id=project.pk, version_ids=list(spans), environment=environment
    )
    whole = Span(
        min(span.first for span in spans.values()), max(span.last for span in spans.values())
    )
    outside = list_scraped_versions(series.values())
    regions = read_region_seconds(project_id=project.pk, series=series, span=whole, hourly=hourly)
    chosen = region if region in regions else "" if region else next(iter(regions), "")
    series = {id: facts for id, facts in series.items() if facts.region == chosen}
    within: dict[str, Any] = {
        "project_id": project.pk,
        "series": series,
        "spans": spans,
        "hourly": hourly,
    }
    called, eager = fetch_rows_together(query_calls(**within), query_eager_causes(**within))
    calls = parse_call_points(called, series, hourly=hourly)
    processes = read_process_points(
        project_id=project.pk, environment=environment, spans=spans, hourly=hourly, outside=outside
    )
    return VersionRows(
        chosen or region, regions, calls, processes, clock_asked, parse_eager_causes(eager, series)
    )


def _last_span(deployment: Deployment, minutes: int) -> Span:
    return Span(
        max(deployment.started_minute, deployment.last_minute + 1 - minutes),
        deployment.last_minute + 1,
    )


def _project(project: Project) -> ProjectShape:
    quota = Quota(
        reports_per_second=read_rate(project.settings),
        reports_waiting=read_waiting_limit(project.settings),
    )
    return ProjectShape(slug=project.slug, name=project.name, quota=quota)


def _model(row: WatchedModel) -> ModelShape:
    budgets = resolve_budgets(row)
    return ModelShape(
        id=row.pk,
        name=row.name,
        first_seen_at=row.first_seen_at,
        last_seen_at=row.last_seen_at,
        simulated=row.simulated,
        cold_start_budget_seconds=budgets.cold_start,
        served_budget_share=budgets.served,
        stalled_budget_share=DEFAULT_STALLED_SHARE if budgets.stalled is None else budgets.stalled,
        budgets_from={
            BUDGET_FIELDS[name]: source for name, source in find_budget_sources(row).items()
        },
    )
