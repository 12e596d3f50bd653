"""The Compare page: whether B is worse than A, by how much, and with which confidence; the same
rows as JSON and CSV."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import accumulate
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.fleet.selectors.versions.comparison_spans import SIDE_BY_SIDE_MINUTES
from dashboard.fleet.selectors.versions.version_series import Span
from dashboard.ui.charts.histogram_drawing import draw_panel
from dashboard.ui.charts.interval_plot import list_ticks
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.time_range import (
    SINCE_DEPLOYMENT,
    SPAN_MINUTES,
    TimeRange,
    build_range_picker,
    read_time_range,
    replace_query,
)
from dashboard.ui.pages.compare.exports import rows_table, serialize_row, serialize_span
from dashboard.ui.pages.compare.presenter import ComparePage, compare_page
from dashboard.ui.pages.compare.queries import CompareQuery, read_compare_data
from dashboard.ui.pages.latency.queries import DIMENSIONS
from dashboard.ui.pages.model.header import Choice, ModelHeader, build_model_header
from dashboard.ui.pages.model.lookup import model_or_404, parse_whole_number
from dashboard.ui.pages.model.verdict_queries import ModelVerdicts

FINDINGS_SHOWN = 4
SPANS_SHOWN = ("1h", "6h", "24h", "7d")


@require_safe
@project_page()
def compare(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The page. Without two versions, it names the missing part."""
    chosen = _read_time_range(request)
    model, standing, page = _read(request, model_id, chosen)
    return render(request, "ui/compare/page.html", _context(request, model, standing, page, chosen))


@require_safe
@project_page()
def compare_json(request: ProjectRequest, model_id: int) -> HttpResponse:
    """All rows, and the data of the charts."""
    page = _page_or_404(request, model_id)
    found = page.facts.why_eager
    why = {
        version.name: found[version.pk].as_dict()
        for version in page.facts.pair
        if version.pk in found
    }
    rows, changed = [serialize_row(row) for row in page.rows], asdict(page.differs)["lines"]
    spans = {
        version.name: serialize_span(page.facts.spans.get(version.pk))
        for version in page.facts.pair
    }
    return JsonResponse(
        {"rows": rows, "spans": spans, "changed": changed, "why_eager": why, **page.drawn()}
    )


@require_safe
@project_page()
def compare_csv(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The evidence table, or the data of one chart."""
    page = _page_or_404(request, model_id)
    chart = request.GET.get("chart")
    if chart in TABLES:
        return csv_response(TABLES[chart](page), f"model-{model_id}-{chart}.csv")
    a, b = page.facts.pair
    return csv_response(rows_table(page.rows, a.name, b.name), f"model-{model_id}-compare.csv")


def _tabulate_instances(page: ComparePage) -> list[list[Any]]:
    points = [point for row in page.strip.rows for point in (*row.baseline, *row.candidate)]
    return [
        ["where", "instance", "side", "seconds", "calls"],
        *([p.place, p.instance, p.arm, p.value, p.n] for p in points),
    ]


def _tabulate_histograms(page: ComparePage) -> list[list[Any]]:
    """One row per bin: its ends, its share of calls, and the cumulative share."""
    rows: list[list[Any]] = [["where", "side", "unit", "from", "to", "share", "share up to"]]
    for panel in page.panels:
        for curve in panel.curves:
            sums = accumulate(curve.shares)
            rows += [
                [panel.place, curve.role, panel.unit, low, high, share, round(min(1.0, up_to), 4)]
                for low, high, share, up_to in zip(
                    curve.edges, curve.edges[1:], curve.shares, sums, strict=False
                )
            ]
    return rows


TABLES = {"instances": _tabulate_instances, "densities": _tabulate_histograms}


def _read_time_range(request: ProjectRequest) -> TimeRange:
    """Reads the time range from the URL, by default since the deployment. A relative range ends
    with the shared time of both versions, which may be long ago."""
    now = clock.minute_of(clock.unix())
    return read_time_range(request.GET, now=now, since=0, usual=SINCE_DEPLOYMENT)


def _read(
    request: ProjectRequest, model_id: int, chosen: TimeRange
) -> tuple[WatchedModel, ModelVerdicts, ComparePage | None]:
    query = request.GET
    asked = CompareQuery(
        a=parse_whole_number(query.get("a")),
        b=parse_whole_number(query.get("b")),
        environment=query.get("env", ""),
        region=query.get("region", ""),
        minutes=SPAN_MINUTES.get(chosen.key),
        within=Span(chosen.first, chosen.last) if chosen.key == "custom" else None,
    )
    model = model_or_404(request, model_id)
    standing, facts = read_compare_data(model=model, asked=asked)
    return (
        model,
        standing,
        compare_page(facts, clock_asked=query.get("clock", "")) if facts else None,
    )


def _page_or_404(request: ProjectRequest, model_id: int) -> ComparePage:
    page = _read(request, model_id, _read_time_range(request))[2]
    if page is None:
        raise Http404("Two versions are required for a comparison.")
    return page


def _context(
    request: ProjectRequest,
    model: WatchedModel,
    standing: ModelVerdicts,
    page: ComparePage | None,
    chosen: TimeRange,
) -> dict[str, Any]:
    header = build_model_header(
        request, model, active="compare", standing=standing, spans=SPANS_SHOWN
    )
    context: dict[str, Any] = {
        "model": model,
        "standing": standing,
        "header": header,
        "page": page,
        "query": request.GET.urlencode(),
        "choices": list(standing.latest.values()),
    }
    return context if page is None else context | _pair_context(request, header, page, chosen)


def _findings_context(
    request: ProjectRequest, model: WatchedModel, page: ComparePage
) -> dict[str, Any]:
    """The findings that only the candidate has, and the address of all its findings."""
    new = next((column for column in page.columns if column.key == "new"), None)
    named = {"version": page.facts.pair[1].pk, "env": page.facts.standing.environment}
    address = reverse("model_findings", args=[request.project.slug, model.pk])
    return {
        "new_findings": new.lines[:FINDINGS_SHOWN] if new else [],
        "new_total": new.total if new else 0,
        "all_findings": f"{address}?{urlencode(named)}",
    }


def _pair_context(
    request: ProjectRequest, header: ModelHeader, page: ComparePage, chosen: TimeRange
) -> dict[str, Any]:
    query, facts = request.GET, page.facts
    a, b = facts.pair
    ran = facts.spans.values()
    if chosen.key != "custom" and ran:
        chosen = replace(
            chosen, first=min(span.first for span in ran), last=max(span.last for span in ran)
        )
    picker = build_range_picker(query, chosen, deployed=True, spans=SPANS_SHOWN)
    regions = [
        Choice(name, replace_query(query, region=name), name == facts.region)
        for name in facts.regions
    ]
    return _findings_context(request, header.model, page) | {
        "header": replace(header, picker=picker, regions=regions),
        "facts": facts,
        "side_by_side_minutes": SIDE_BY_SIDE_MINUTES,
        "verdict": facts.verdict,
        "is_current": facts.verdict is not None
        and header.verdict is not None
        and facts.verdict.pk == header.verdict.pk,
        "a": a,
        "b": b,
        "axis": list_ticks("percent"),
        "strip": page.strip.draw(),
        "panels": [(panel, draw_panel(panel)) for panel in page.panels],
        "curve": "ecdf" if query.get("curve") == "ecdf" else "share",
        "picker": picker,
        "clocks": [
            (words, replace_query(query, clock=key), key == page.clock)
            for key, words in (("gpu", "GPU time"), ("wall", "Wall time"))
        ],
        "dimensions": DIMENSIONS,
        "by": by if (by := query.get("by", "")) in DIMENSIONS else "gpu",
        "latency_query": replace_query(query, a=str(a.pk), b=str(b.pk), by="").removeprefix("?"),
        "swap": replace_query(query, a=str(b.pk), b=str(a.pk)),
        "span_a": facts.spans.get(a.pk),
        "span_b": facts.spans.get(b.pk),
        "absent": [version.name for version in (a, b) if version.pk not in facts.spans],
    }
