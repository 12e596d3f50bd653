"""The Compare page: whether B is worse than A, by how much, and with which confidence; the same
rows as JSON and CSV."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import accumulate
from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.alerts.models import AlertCause
from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.fleet.selectors.versions.version_series import Span
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
from dashboard.ui.pages.model.queries import ModelVerdicts
from dashboard.ui.pages.model.views import model_or_404, parse_whole_number

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
    query = request.GET
    context: dict[str, Any] = {
        "model": model,
        "standing": standing,
        "page": page,
        "query": query.urlencode(),
        "choices": list(standing.latest.values()),
        "kept": [
            (name, value)
            for name, values in query.lists()
            if name not in ("a", "b", "env")
            for value in values
        ],
    }
    if page is None:
        return context
    facts = page.facts
    a, b = facts.pair
    ran = facts.spans.values()
    if chosen.key != "custom" and ran:
        chosen = replace(
            chosen, first=min(span.first for span in ran), last=max(span.last for span in ran)
        )
    asked = (
        facts.verdict and request.membership.open_alerts
    )  # Skips queries for data that the project does not have.
    alert = (
        facts.b.alerts.filter(cause=AlertCause.REGRESSION)
        .exclude(state="resolved")
        .order_by("-opened_at")
        .first()
        if asked
        else None
    )
    return context | {
        "facts": facts,
        "verdict": facts.verdict,
        "a": a,
        "b": b,
        "alert": alert,
        "data": page.drawn(),
        "several_strata": len(facts.series) > 2,
        "picker": build_range_picker(query, chosen, deployed=True, spans=SPANS_SHOWN),
        "regions": [
            (name, replace_query(query, region=name), name == facts.region)
            for name in facts.regions
        ],
        "clocks": [
            (words, replace_query(query, clock=key), key == page.clock)
            for key, words in (("gpu", "GPU time"), ("wall", "Wall time"))
        ],
        "swap": replace_query(query, a=str(b.pk), b=str(a.pk)),
        "span_a": facts.spans.get(a.pk),
        "span_b": facts.spans.get(b.pk),
        "absent": [version.name for version in (a, b) if version.pk not in facts.spans],
    }
