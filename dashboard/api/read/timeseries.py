"""Endpoints of metrics over time and of comparisons of two versions, in base units.

The charts of the Model and Compare pages show the same data.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from django.http import Http404
from ninja import Query, Router, Schema
from pydantic import Field

from dashboard.alerts.current_verdict import resolve_pair_verdict
from dashboard.api.read.auth import ReadRequest
from dashboard.api.read.models_versions import (
    MAX_VERSIONS,
    READ_METHODS,
    VersionRows,
    get_model_or_404,
    group_deployments_by_version,
    read_version_rows,
)
from dashboard.api.read.schemas import (
    MAX_ID,
    ComparisonAnswer,
    Id,
    NamedVersion,
    Series,
    SeriesShape,
    SideShape,
    Slug,
)
from dashboard.api.read.serializers import evidence_shapes, span_shape, verdict_shape
from dashboard.common import clock
from dashboard.fleet.metrics.aggregate import bin_calls, bin_processes
from dashboard.fleet.metrics.metric_names import METRICS_BY_NAME
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.retention import find_first_kept_minute
from dashboard.fleet.selectors.versions.comparison_spans import find_comparison_spans
from dashboard.fleet.selectors.versions.version_series import Span
from dashboard.fleet.selectors.versions.versions import list_model_deployments
from dashboard.ingest.body_decoder import RefusalError
from dashboard.projects.models import Project
from dashboard.regressions.selectors import find_pair_verdict

MAX_BINS = 1500
DEFAULT_MAX_BINS = 400
DEFAULT_VERSION_COUNT = 6
STEPS_MINUTES = (1, 2, 3, 5, 10, 15, 30, 60, 180, 360, 720, 1440)
Clock = Annotated[
    Literal["", "gpu", "wall"],
    Field(
        description="gpu or wall time; default: GPU time if every version was sampled often "
        "enough, else wall time."
    ),
]
router = Router(tags=["Figures"])


class SeriesQuery(Schema):
    metric: list[str] = Field(
        ["p50_seconds"],
        description=f"Repeat the parameter for several metrics: {', '.join(METRICS_BY_NAME)}.",
        max_length=len(METRICS_BY_NAME),
    )
    version: list[int] = Field(
        [],
        description="Version ids; default: the newest six of the environment.",
        max_length=MAX_VERSIONS,
    )
    environment: str = Field("production", max_length=64)
    region: str = Field("", max_length=200, description="Default: the busiest region.")
    clock: Clock = ""
    minutes: int = Field(360, ge=1, le=400 * 1440, description="Length of the span.")
    until: datetime | None = Field(None, description="End of the span, exclusive; default: now.")
    step: int = Field(
        0,
        ge=0,
        le=1440,
        description="Minutes per bin; default: the smallest step with at most 400 bins.",
    )


class ComparisonQuery(Schema):
    a: int = Field(ge=1, le=MAX_ID, description="Version id of the baseline.")
    b: int = Field(ge=1, le=MAX_ID, description="Version id of the candidate.")
    environment: str = Field("production", max_length=64)
    region: str = Field("", max_length=200, description="Default: the busiest region.")
    clock: Clock = ""
    minutes: int | None = Field(
        None,
        ge=1,
        le=400 * 1440,
        description="Only the last minutes of the span; default: the whole span.",
    )


@router.api_operation(
    READ_METHODS,
    "/projects/{project}/models/{model_id}/series",
    response=Series,
    summary="Metrics over time",
)
def series_read(
    request: ReadRequest, project: Slug, model_id: Id, asked: Query[SeriesQuery]
) -> Series:
    """Returns one list of values per metric and version, one value per bin.

    Bins of whole hours begin on the hour.
    """
    owner = request.auth.project(project)
    model = get_model_or_404(owner, model_id)
    for name in asked.metric:
        if name not in METRICS_BY_NAME:
            raise RefusalError(
                "bad_request",
                f"metric: {name[:60]!r} is unknown, expected {', '.join(METRICS_BY_NAME)}.",
            )
    window = _window(owner, asked)
    versions = _versions(model, asked)
    span = Span(window.first, window.last)
    rows = read_version_rows(
        owner,
        asked.environment,
        asked.region,
        dict.fromkeys(versions, span),
        hourly=window.step % 60 == 0,
        clock_asked=asked.clock,
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
        series=_build_series(rows, dict.fromkeys(asked.metric), versions, window),
    )


def _build_series(
    rows: VersionRows, metrics: Iterable[str], versions: Iterable[int], window: TimeBins
) -> list[SeriesShape]:
    """One series per metric and version ID, with one value per bin."""
    calls, processes = (
        bin_calls(rows.calls, window, rows.clock, rows.callers),
        bin_processes(rows.processes, window),
    )
    found = []
    for name in metrics:
        metric, unit = METRICS_BY_NAME[name]
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
                    below_seconds=[one.bound if one else None for one in bounds]
                    if any(bounds)
                    else None,
                    mean_seconds=[one.mean if one else None for one in bounds]
                    if any(bounds)
                    else None,
                )
            )
    return found


def _window(project: Project, asked: SeriesQuery) -> TimeBins:
    """The bins of the query. A span that begins before the retained minutes needs bins of whole
    hours. Raises RefusalError."""
    end = clock.minute_of(
        asked.until.timestamp() if asked.until and asked.until.tzinfo else clock.unix()
    )
    if asked.until is not None and asked.until.tzinfo is None:
        raise RefusalError(
            "bad_request", "until: expected a time with its zone, such as 2026-11-22T10:00:00Z."
        )
    if not end - asked.minutes >= 0 or end > clock.minute_of(clock.unix()) + 1440:
        raise RefusalError(
            "bad_request", "until: expected a time since 1970 and at most one day ahead."
        )
    hours = end - asked.minutes < find_first_kept_minute(project=project, now=clock.unix())
    fits = [
        step
        for step in STEPS_MINUTES
        if asked.minutes <= step * DEFAULT_MAX_BINS and (step % 60 == 0 or not hours)
    ]
    step = asked.step or (fits[0] if fits else 1440)
    if step % 60 and hours:
        raise RefusalError(
            "bad_request",
            f"step: {step} is less than an hour, but only whole hours are retained for a span "
            "that begins this early.",
        )
    window = TimeBins.ending(end, asked.minutes, step)
    if window.count > MAX_BINS:
        raise RefusalError(
            "bad_request", f"step: results in {window.count:,} bins, expected at most {MAX_BINS:,}."
        )
    return window


def _versions(model: WatchedModel, asked: SeriesQuery) -> dict[int, str]:
    """Version names by ID. Raises RefusalError for a version that did not run in this
    environment."""
    if not asked.version:
        return {
            id: rows[0].version.name
            for id, rows in group_deployments_by_version(
                model, asked.environment, DEFAULT_VERSION_COUNT
            ).items()
        }
    wanted = [id for id in dict.fromkeys(asked.version) if 1 <= id <= MAX_ID]
    known = _find_newest_deployments(model, asked.environment, wanted)
    for id in asked.version:
        if id not in known:
            raise RefusalError(
                "bad_request",
                f"version: {id} is not a version of this model in {asked.environment}.",
            )
    return {id: known[id].version.name for id in wanted}


def _find_newest_deployments(
    model: WatchedModel, environment: str, wanted: Iterable[int]
) -> dict[int, Deployment]:
    """The newest deployment of each of these versions in the environment."""
    found: dict[int, Deployment] = {}
    for row in list_model_deployments(
        project_id=model.project_id, model_id=model.pk, always=tuple(wanted)
    ):
        if row.environment == environment:
            found.setdefault(row.version_id, row)
    return found


@router.api_operation(
    READ_METHODS,
    "/projects/{project}/models/{model_id}/comparisons",
    response=ComparisonAnswer,
    summary="Two versions side by side",
)
def comparison_read(
    request: ReadRequest, project: Slug, model_id: Id, asked: Query[ComparisonQuery]
) -> ComparisonAnswer:
    """Returns the metrics of both versions and the verdict of the pair. Plain metrics do not show a
    cause; the evidence compares equal workloads."""
    owner = request.auth.project(project)
    known = _find_newest_deployments(
        get_model_or_404(owner, model_id), asked.environment, (asked.a, asked.b)
    )
    if asked.a == asked.b:
        raise RefusalError("bad_request", "b: must differ from a.")
    a, b = known.get(asked.a), known.get(asked.b)
    if a is None or b is None:
        raise Http404(
            f"Version {asked.a if a is None else asked.b} is not a version of this model in "
            f"{asked.environment}."
        )
    spans, together = find_comparison_spans(a, b, asked.minutes)
    rows = read_version_rows(owner, asked.environment, asked.region, spans, clock_asked=asked.clock)
    newest, turned = find_pair_verdict(a, b)
    verdict = resolve_pair_verdict(newest)
    sides = [
        SideShape(
            id=row.version_id,
            name=row.version.name,
            span=span_shape(spans[row.version_id]),
            figures=rows.figures(row.version_id),
        )
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
