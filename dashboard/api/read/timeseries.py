"""Figures over time, and two versions side by side: what the charts of the Model and Compare pages draw, in base units."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from django.http import Http404
from ninja import Query, Router, Schema
from pydantic import Field

from dashboard.alerts.current_verdict import pair_standing
from dashboard.api.read.auth import ReadRequest
from dashboard.api.read.models_versions import MOST_VERSIONS, READ, deployments_by_version, model_or_404, rows_read
from dashboard.api.read.schemas import LARGEST, ComparisonAnswer, Id, NamedVersion, Series, SeriesShape, SideShape, Slug
from dashboard.api.read.serializers import evidence_shapes, span_shape, verdict_shape
from dashboard.common import clock
from dashboard.fleet.metrics.aggregate import calls_binned, processes_binned
from dashboard.fleet.metrics.metric_names import NAMED
from dashboard.fleet.metrics.time_bins import Window
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.retention import minutes_kept_from
from dashboard.fleet.selectors.versions.comparison_spans import pair_spans
from dashboard.fleet.selectors.versions.version_series import Span
from dashboard.fleet.selectors.versions.versions import model_deployments
from dashboard.ingest.body_decoder import Refused
from dashboard.projects.models import Project
from dashboard.regressions.selectors import verdict_of_pair

MOST_BINS = 1500
USUAL_BINS = 400
DRAWN = 6
STEPS = (1, 2, 3, 5, 10, 15, 30, 60, 180, 360, 720, 1440)
Clock = Annotated[
    Literal["", "gpu", "wall"],
    Field(description="gpu or wall time; without it GPU time where every version was sampled often enough, else wall time."),
]
router = Router(tags=["Figures"])


class SeriesAsked(Schema):
    metric: list[str] = Field(["p50_seconds"], description=f"Again and again for several: {', '.join(NAMED)}.", max_length=len(NAMED))
    version: list[int] = Field([], description="Ids; without any the newest six of the environment.", max_length=MOST_VERSIONS)
    environment: str = Field("production", max_length=64)
    region: str = Field("", max_length=200, description="Without it the busiest region.")
    clock: Clock = ""
    minutes: int = Field(360, ge=1, le=400 * 1440, description="How long the span is.")
    until: datetime | None = Field(None, description="Its end, exclusive; without it now.")
    step: int = Field(0, ge=0, le=1440, description="Minutes a bin; without it so many that there are at most 400 bins.")


class ComparisonAsked(Schema):
    a: int = Field(ge=1, le=LARGEST, description="The id of the baseline's version.")
    b: int = Field(ge=1, le=LARGEST, description="The id of the candidate's version.")
    environment: str = Field("production", max_length=64)
    region: str = Field("", max_length=200, description="Without it the busiest region.")
    clock: Clock = ""
    minutes: int | None = Field(None, ge=1, le=400 * 1440, description="The last so many of the span; without it all of it.")


@router.api_operation(READ, "/projects/{project}/models/{model_id}/series", response=Series, summary="Figures over time")
def series_read(request: ReadRequest, project: Slug, model_id: Id, asked: Query[SeriesAsked]) -> Series:
    """One list of values a metric and version, one value a bin. A bin of a step of whole hours begins on one."""
    owner = request.auth.project(project)
    model = model_or_404(owner, model_id)
    for name in asked.metric:
        if name not in NAMED:
            raise Refused("bad_request", f"metric: {name[:60]!r} is none, expected {', '.join(NAMED)}.")
    window = _window(owner, asked)
    versions = _versions(model, asked)
    span = Span(window.first, window.last)
    rows = rows_read(
        owner, asked.environment, asked.region, dict.fromkeys(versions, span), hourly=window.step % 60 == 0, clock_asked=asked.clock
    )
    calls, processes = calls_binned(rows.calls, window, rows.clock, rows.callers), processes_binned(rows.processes, window)
    found = []
    for name in dict.fromkeys(asked.metric):
        metric, unit = NAMED[name]
        for id in versions:
            mine, its = calls.get(id, {}), processes.get(id, {})
            values = [metric.read(mine.get(place), its.get(place)) for place in range(window.count)]
            bounds = [metric.below(mine.get(place)) for place in range(window.count)]
            found.append(
                SeriesShape(
                    metric=name,
                    unit=unit,
                    version_id=id,
                    values=values,
                    below_seconds=[one.bound if one else None for one in bounds] if any(bounds) else None,
                    mean_seconds=[one.mean if one else None for one in bounds] if any(bounds) else None,
                )
            )
    return Series(
        environment=asked.environment,
        region=rows.region,
        regions=list(rows.regions),
        clock=rows.clock,
        span=span_shape(span),
        step_seconds=window.step * 60,
        versions=[NamedVersion(id=id, name=name) for id, name in versions.items()],
        times=[clock.at_minute(start) for start in window.starts()],
        series=found,
    )


def _window(project: Project, asked: SeriesAsked) -> Window:
    """The bins; what begins before the minutes that are kept has bins of whole hours."""
    end = clock.minute_of(asked.until.timestamp() if asked.until and asked.until.tzinfo else clock.unix())
    if asked.until is not None and asked.until.tzinfo is None:
        raise Refused("bad_request", "until: expected a time with its zone, such as 2026-11-22T10:00:00Z.")
    if not end - asked.minutes >= 0 or end > clock.minute_of(clock.unix()) + 1440:
        raise Refused("bad_request", "until: expected a time since 1970 that is no more than a day ahead.")
    hours = end - asked.minutes < minutes_kept_from(project=project, now=clock.unix())
    fits = [step for step in STEPS if asked.minutes <= step * USUAL_BINS and (step % 60 == 0 or not hours)]
    step = asked.step or (fits[0] if fits else 1440)
    if step % 60 and hours:
        raise Refused("bad_request", f"step: {step} is less than an hour, and of a span that begins this early whole hours are kept.")
    window = Window.ending(end, asked.minutes, step)
    if window.count > MOST_BINS:
        raise Refused("bad_request", f"step: makes {window.count:,} bins, expected at most {MOST_BINS:,}.")
    return window


def _versions(model: WatchedModel, asked: SeriesAsked) -> dict[int, str]:
    """Names by id; one that did not run in this environment is refused by name."""
    if not asked.version:
        return {id: rows[0].version.name for id, rows in deployments_by_version(model, asked.environment, DRAWN).items()}
    wanted = [id for id in dict.fromkeys(asked.version) if 1 <= id <= LARGEST]
    known = _newest(model, asked.environment, wanted)
    for id in asked.version:
        if id not in known:
            raise Refused("bad_request", f"version: {id} is no version of this model in {asked.environment}.")
    return {id: known[id].version.name for id in wanted}


def _newest(model: WatchedModel, environment: str, wanted: Iterable[int]) -> dict[int, Deployment]:
    """The newest deployment of each of these versions there."""
    found: dict[int, Deployment] = {}
    for row in model_deployments(project_id=model.project_id, model_id=model.pk, always=tuple(wanted)):
        if row.environment == environment:
            found.setdefault(row.version_id, row)
    return found


@router.api_operation(
    READ, "/projects/{project}/models/{model_id}/comparisons", response=ComparisonAnswer, summary="Two versions side by side"
)
def comparison_read(request: ReadRequest, project: Slug, model_id: Id, asked: Query[ComparisonAsked]) -> ComparisonAnswer:
    """Figures of both, and what the judge says of them. Figures alone say nothing about cause; the evidence compares like with like."""
    owner = request.auth.project(project)
    known = _newest(model_or_404(owner, model_id), asked.environment, (asked.a, asked.b))
    if asked.a == asked.b:
        raise Refused("bad_request", "b: expected another version than a.")
    a, b = known.get(asked.a), known.get(asked.b)
    if a is None or b is None:
        raise Http404(f"Version {asked.a if a is None else asked.b} is none of this model in {asked.environment}.")
    spans, together = pair_spans(a, b, asked.minutes)
    rows = rows_read(owner, asked.environment, asked.region, spans, clock_asked=asked.clock)
    newest, turned = verdict_of_pair(a, b)
    verdict = pair_standing(newest)
    sides = [
        SideShape(id=row.version_id, name=row.version.name, span=span_shape(spans[row.version_id]), figures=rows.figures(row.version_id))
        for row in (a, b)
    ]
    return ComparisonAnswer(
        environment=asked.environment,
        region=rows.region,
        clock=rows.clock,
        side_by_side=together,
        a=sides[0],
        b=sides[1],
        verdict=verdict_shape(verdict) if verdict else None,
        judged_the_other_way_round=turned,
        evidence=evidence_shapes(verdict.evidence) if verdict else [],
    )
