"""Latency panels as JSON: the heat map over time, and the breakdown by GPU, mode, region or host.

A page loads a panel when a person opens it."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from dashboard.common import clock
from dashboard.fleet.metrics.aggregate import Clock, choose_clock
from dashboard.fleet.retention import find_first_kept_minute
from dashboard.ui.charts.breakdown import build_breakdown, describe_rest
from dashboard.ui.charts.latency_map import build_latency_map
from dashboard.ui.charts.trends import serialize_trends
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import respond_json
from dashboard.ui.pages.latency.queries import DIMENSIONS, LatencyData, read_latency
from dashboard.ui.pages.model.header import read_model_range
from dashboard.ui.pages.model.lookup import model_or_404, parse_whole_number
from dashboard.ui.pages.model.verdict_queries import read_model_verdicts


@require_safe
@project_page()
def latency_map(request: ProjectRequest, model_id: int) -> HttpResponse:
    """Calls per time bin and log bucket of both versions."""
    data = _read(request, model_id)
    found = build_latency_map(data.points, data.window, _clock(request, data), data.pair)
    return respond_json(request, _frame(data) | {"map": found.as_json(), "region": data.region})


@require_safe
@project_page()
def breakdown(request: ProjectRequest, model_id: int) -> HttpResponse:
    """p50, p99 and compiled share of both versions by group; an unknown group is GPU."""
    by = request.GET.get("by", "")
    by = by if by in DIMENSIONS else "gpu"
    data = _read(request, model_id, by=by)
    rows = zip(data.names, data.points, strict=True)
    found = build_breakdown(rows, data.window, _clock(request, data), data.pair)
    groups = [
        {
            "name": group.name,
            "calls": group.calls,
            "charts": serialize_trends(data.window, data.pair, group.charts, [])["charts"],
        }
        for group in found.groups
    ]
    rest = describe_rest(found)
    return respond_json(
        request, _frame(data) | {"by": by, "groups": groups, "rest": rest, "note": data.note}
    )


def _read(request: ProjectRequest, model_id: int, by: str = "") -> LatencyData:
    query, model = request.GET, model_or_404(request, model_id)
    standing = read_model_verdicts(
        model=model,
        environment=query.get("env", ""),
        version_id=parse_whole_number(query.get("b") or query.get("version")),
        baseline_id=parse_whole_number(query.get("a") or query.get("baseline")),
    )
    chosen = read_model_range(query, model, standing)
    kept = find_first_kept_minute(project=request.project, now=clock.unix())
    window = chosen.bins(minutes_from=kept)
    return read_latency(model, standing, window, region=query.get("region", ""), by=by)


def _clock(request: ProjectRequest, data: LatencyData) -> Clock:
    asked = request.GET.get("clock")
    if asked == "wall":
        return "wall"
    return "gpu" if asked == "gpu" else choose_clock(data.points)


def _frame(data: LatencyData) -> dict[str, Any]:
    """The window and the versions."""
    whole = serialize_trends(data.window, data.pair, [], [])
    return {"window": whole["window"], "versions": whole["versions"]}
