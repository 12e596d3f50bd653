"""Projects, models and versions."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from ninja import Query, Router, Schema
from pydantic import Field

from dashboard.alerts.current_verdict import verdicts_standing
from dashboard.api.read.auth import ReadRequest
from dashboard.api.read.paging import Paging, rows_paged
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
from dashboard.common.raw_queries import rows_together
from dashboard.fleet.budgets import STALLED, budgets_from, budgets_of
from dashboard.fleet.metrics.aggregate import Calls, Clock, Processes, callers_shared, calls_summed, clock_shared
from dashboard.fleet.metrics.eager_causes import WhyEager
from dashboard.fleet.metrics.metric_names import figures_named
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.retention import minutes_kept_from
from dashboard.fleet.selectors.versions.comparison_spans import spans_hourly
from dashboard.fleet.selectors.versions.eager_causes import eager_rows, versions_eager
from dashboard.fleet.selectors.versions.version_series import (
    CallPoint,
    ProcessPoint,
    Span,
    call_points_of,
    call_rows,
    process_points,
    region_seconds,
    series_outermost,
    versions_outside,
)
from dashboard.fleet.selectors.versions.versions import model_deployments, model_find
from dashboard.projects.models import Project
from dashboard.projects.rate_limit import rate_of, waiting_of
from dashboard.projects.selectors import for_project
from dashboard.regressions.selectors import verdicts_current

READ = ["GET", "HEAD"]
MOST_VERSIONS = 12
BUDGETS = {"cold_start": "cold_start_budget_seconds", "served": "served_budget_share", "stalled": "stalled_budget_share"}
router = Router(tags=["Models"])


class ModelsAsked(Paging):
    name: str = Field("", max_length=200, description="Only the model that is called so.")


class VersionsAsked(Schema):
    environment: str = Field("production", max_length=64)
    region: str = Field("", max_length=200, description="Without it the busiest region.")
    minutes: int = Field(60, ge=1, le=1440, description="Of how many of its last minutes the figures of a version are.")
    limit: int = Field(MOST_VERSIONS, ge=1, le=MOST_VERSIONS, description="The newest versions, at most so many.")


@router.api_operation(READ, "/projects", response=Projects, summary="The projects that may be read")
def projects_list(request: ReadRequest) -> Projects:
    """One for a key; all of a person's for a session."""
    return Projects(items=[_project(project) for project in request.auth.projects()])


@router.api_operation(READ, "/projects/{project}/models", response=Models, summary="Models")
def models_list(request: ReadRequest, project: Slug, asked: Query[ModelsAsked]) -> Models:
    """In the order in which they became known."""
    rows = for_project(WatchedModel, request.auth.project(project)).select_related("project")
    rows = rows.filter(name=asked.name) if asked.name else rows
    found, after = rows_paged(rows, asked, newest_first=False)
    return Models(items=[_model(row) for row in found], next=after)


@router.api_operation(READ, "/projects/{project}/models/{model_id}", response=OneModel, summary="One model")
def model_one(request: ReadRequest, project: Slug, model_id: Id) -> OneModel:
    """With the environments of its deployments."""
    model = model_or_404(request.auth.project(project), model_id)
    deployments = model_deployments(project_id=model.project_id, model_id=model.pk)
    return OneModel(**_model(model).dict(), environments=sorted({row.environment for row in deployments}))


@router.api_operation(READ, "/projects/{project}/models/{model_id}/versions", response=Versions, summary="Versions of a model")
def versions_list(request: ReadRequest, project: Slug, model_id: Id, asked: Query[VersionsAsked]) -> Versions:
    """Deployments, verdict and figures of the newest versions of an environment."""
    owner = request.auth.project(project)
    model = model_or_404(owner, model_id)
    here = deployments_by_version(model, asked.environment, asked.limit)
    spans = {id: _last(rows[0], asked.minutes) for id, rows in here.items()}
    rows = rows_read(owner, asked.environment, asked.region, spans)
    verdicts = {row.deployment_id: row for row in verdicts_standing(verdicts_current(project=owner).filter(deployment__model=model))}
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


def model_or_404(project: Project, model_id: int) -> WatchedModel:
    """The model, if it is of this project."""
    model = model_find(project_id=project.pk, model_id=model_id)
    if model is None:
        raise Http404("There is no such model in this project.")
    return model


def deployments_by_version(model: WatchedModel, environment: str, most: int) -> dict[int, list[Deployment]]:
    """The newest versions of an environment, each with its deployments there, the newest first."""
    found: dict[int, list[Deployment]] = {}
    for row in model_deployments(project_id=model.project_id, model_id=model.pk):
        if row.environment == environment:
            found.setdefault(row.version_id, []).append(row)
    return dict(list(found.items())[:most])


class Rows:
    """Rows of some versions in one region, each over its own span."""

    def __init__(
        self,
        region: str,
        regions: dict[str, float],
        calls: list[CallPoint],
        processes: list[ProcessPoint],
        clock: str,
        why_eager: dict[int, WhyEager],
    ) -> None:
        self.region, self.regions, self.calls, self.processes, self.why_eager = region, regions, calls, processes, why_eager
        self.clock: Clock = "wall" if clock == "wall" else "gpu" if clock == "gpu" else clock_shared(calls)
        self.callers = callers_shared(calls)

    def figures(self, version_id: int) -> Figures:
        """Everything as one sum."""
        mine = [row for row in self.calls if row.version_id == version_id]
        calls: Calls | None = calls_summed(mine, self.clock, self.callers) if mine else None
        processes: Processes | None = None
        for row in self.processes:
            if row.version_id == version_id and row.instances:
                processes = processes or Processes()
                processes.add(row)
        why = self.why_eager.get(version_id)
        counted: dict[str, Any] = {"calls": calls.calls if calls else None, "instances": processes.instances if processes else None}
        counted |= {"warm_up_calls": calls.warmup, "with_stalled_calls": calls.callers} if calls else {}
        counted["why_eager"] = why.as_dict() if why else None
        return Figures.model_validate(counted | figures_named(calls, processes))


def rows_read(
    project: Project, environment: str, region: str, spans: dict[int, Span], *, hourly: bool | None = None, clock_asked: str = ""
) -> Rows:
    """Reads them in four queries; the busiest region where none is named."""
    if not spans:
        return Rows("", {}, [], [], clock_asked, {})
    if hourly is None:
        hourly = spans_hourly(spans.values(), kept_from=minutes_kept_from(project=project, now=clock.unix()))
    series = series_outermost(project_id=project.pk, version_ids=list(spans), environment=environment)
    whole = Span(min(span.first for span in spans.values()), max(span.last for span in spans.values()))
    outside = versions_outside(series.values())
    regions = region_seconds(project_id=project.pk, series=series, span=whole, hourly=hourly)
    chosen = region if region in regions else "" if region else next(iter(regions), "")
    series = {id: facts for id, facts in series.items() if facts.region == chosen}
    within: dict[str, Any] = {"project_id": project.pk, "series": series, "spans": spans, "hourly": hourly}
    called, eager = rows_together(call_rows(**within), eager_rows(**within))
    calls = call_points_of(called, series, hourly=hourly)
    processes = process_points(project_id=project.pk, environment=environment, spans=spans, hourly=hourly, outside=outside)
    return Rows(chosen or region, regions, calls, processes, clock_asked, versions_eager(eager, series))


def _last(deployment: Deployment, minutes: int) -> Span:
    return Span(max(deployment.started_minute, deployment.last_minute + 1 - minutes), deployment.last_minute + 1)


def _project(project: Project) -> ProjectShape:
    quota = Quota(reports_per_second=rate_of(project.settings), reports_waiting=waiting_of(project.settings))
    return ProjectShape(slug=project.slug, name=project.name, quota=quota)


def _model(row: WatchedModel) -> ModelShape:
    budgets = budgets_of(row)
    return ModelShape(
        id=row.pk,
        name=row.name,
        first_seen_at=row.first_seen_at,
        last_seen_at=row.last_seen_at,
        simulated=row.simulated,
        cold_start_budget_seconds=budgets.cold_start,
        served_budget_share=budgets.served,
        stalled_budget_share=STALLED if budgets.stalled is None else budgets.stalled,
        budgets_from={BUDGETS[name]: source for name, source in budgets_from(row).items()},
    )
