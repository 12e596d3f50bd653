"""The Model page: its versions over time; the same numbers as JSON and CSV."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.alerts.current_verdict import find_divergence_alert
from dashboard.common import clock
from dashboard.fleet.retention import find_first_kept_minute
from dashboard.fleet.selectors.instances.silences import find_silences
from dashboard.ui.charts.metric_values import COLD_START
from dashboard.ui.charts.trends import serialize_trends
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.paging import paginate, read_page_number
from dashboard.ui.http.partials import mark_uncached, respond_json
from dashboard.ui.http.sortable_table import Order
from dashboard.ui.http.time_range import (
    SPAN_MINUTES,
    replace_query,
)
from dashboard.ui.layout.silence_banner import SilenceBanner, silence_banner
from dashboard.ui.pages.kill_switch.queries import list_live_kill_switches
from dashboard.ui.pages.model.header import Choice, ModelHeader, build_model_header
from dashboard.ui.pages.model.last_week import Place, read_last_week, shift_window
from dashboard.ui.pages.model.lookup import model_or_404 as model_or_404
from dashboard.ui.pages.model.lookup import parse_whole_number as parse_whole_number
from dashboard.ui.pages.model.presenter import ModelPage, model_page, tabulate_charts
from dashboard.ui.pages.model.queries import (
    MAX_VERSIONS_LISTED,
    ModelQuery,
    read_model_data,
)
from dashboard.ui.pages.model.trends_csv import tabulate_bins, tabulate_starts
from dashboard.ui.pages.model.versions_queries import list_versions
from dashboard.ui.pages.model.versions_table import sort_versions, versions_columns

MAX_REPORT_AGE_MINUTES = 10
"""Minutes after its latest report in which a page without charts waits for them."""


@require_safe
@project_page()
def model(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The page."""
    page, header = _page(request, model_id)
    return mark_uncached(render(request, "ui/model/page.html", _context(request, page, header)))


@require_safe
@project_page()
def model_json(request: ProjectRequest, model_id: int) -> HttpResponse:
    """Data of the charts as the page draws them; 304 if unchanged. Asks a page that waits for its
    first charts to reload."""
    page, _ = _page(request, model_id)
    if request.headers.get("HX-Request"):
        return mark_uncached(
            HttpResponse(status=204, headers={} if page.silent else {"HX-Refresh": "true"})
        )
    if request.GET.get("week"):
        return respond_json(request, _read_last_week(page))
    return respond_json(request, _build_charts(page))


@require_safe
@project_page()
def model_csv(request: ProjectRequest, model_id: int) -> HttpResponse:
    """One row per version and bin, one column per chart, or only the requested chart; an empty cell
    means no report."""
    page, _ = _page(request, model_id)
    key = request.GET.get("chart", "")
    if key == COLD_START.key:
        return csv_response(tabulate_starts(page), f"model-{model_id}-{key}.csv")
    charts = [trend for trend in page.trends if trend.key == key] or [
        trend for trend in page.trends if trend.key != COLD_START.key
    ]
    return csv_response(
        tabulate_bins(page, charts), f"model-{model_id}-{key if len(charts) == 1 else 'trends'}.csv"
    )


@require_safe
@project_page()
def model_numbers(request: ProjectRequest, model_id: int) -> HttpResponse:
    """Data of the charts as tables, for the baseline and the evaluated version: a part of the page
    that loads when it is unfolded, else a page."""
    page, _ = _page(request, model_id)
    drawn = [version for version in page.facts.drawn if version.slot <= 2] or page.facts.drawn[:1]
    context = {
        "tables": tabulate_charts(page, drawn),
        "window": page.facts.asked.window,
        "model": page.facts.model,
        "query": request.GET.urlencode(),
    }
    part = (
        "ui/model/numbers.html"
        if request.headers.get("HX-Request")
        else "ui/model/numbers_page.html"
    )
    return mark_uncached(render(request, part, context))


def _page(request: ProjectRequest, model_id: int) -> tuple[ModelPage, ModelHeader]:
    query, found = request.GET, model_or_404(request, model_id)
    header = build_model_header(request, found, active="overview")
    standing, chosen = header.standing, header.range
    first_kept = find_first_kept_minute(project=request.project, now=clock.unix())
    window = chosen.bins(minutes_from=first_kept)
    order = _order(query, whole=True)
    listed = list_versions(
        model=found, standing=standing, order=order, page=read_page_number(query, name="vpage")
    )
    asked = ModelQuery(
        window,
        standing.environment,
        query.get("region", ""),
        parse_whole_number(query.get("version")),
        tuple(listed.ids),
    )
    page = model_page(
        read_model_data(model=found, asked=asked, standing=standing),
        clock_asked=query.get("clock", ""),
    )
    if listed.whole:
        page.versions = sort_versions(page.versions, order)
    diverged = find_divergence_alert(deployment_id=page.alert.deployment_id) if page.alert else None
    regions = [
        Choice(name, replace_query(query, region=name), name == page.facts.region)
        for name in page.facts.regions
    ]
    return replace(
        page, versions_total=listed.total, ranks_alert=diverged.number if diverged else None
    ), replace(header, regions=regions)


def _order(query: QueryDict, *, whole: bool) -> Order:
    return Order.read(query, versions_columns(whole=whole), "usual", name="vsort")


def _read_last_week(page: ModelPage) -> dict[str, Any]:
    """The charts seven days earlier, of the versions that ran then."""
    facts = page.facts
    window = shift_window(facts.asked.window)
    ids = [
        deployment.version_id
        for deployment in facts.standing.deployments
        if deployment.started_minute < window.last and deployment.last_minute >= window.first
    ]
    place = Place(facts.standing.environment, facts.region, list(dict.fromkeys(ids)))
    return read_last_week(facts.model, place, window, page.clock)


def _build_charts(page: ModelPage) -> dict[str, Any]:
    """The charts, and `said`: a fingerprint of the rest of the page. If it changes, the page must
    be reloaded."""
    verdict = page.facts.standing.verdict
    said = [verdict.pk if verdict else None, *(version.id for version in page.facts.drawn)]
    return serialize_trends(page.facts.asked.window, page.facts.drawn, page.trends, page.marks) | {
        "said": said
    }


def _silence(page: ModelPage) -> SilenceBanner | None:
    facts = page.facts
    found = find_silences((one.instance for one in facts.reporting), clock.now()).models.get(
        facts.model.pk
    )
    return silence_banner(found, facts.alerts, model_id=facts.model.pk, name=facts.model.name)


def _context(request: ProjectRequest, page: ModelPage, header: ModelHeader) -> dict[str, Any]:
    query, facts, chosen = request.GET, page.facts, header.range
    window = facts.asked.window
    whole = page.versions_total <= MAX_VERSIONS_LISTED
    last = max((deployment.last_minute for deployment in facts.standing.deployments), default=None)
    return {
        "page": page,
        "silence": _silence(page),
        "facts": facts,
        "model": facts.model,
        "standing": facts.standing,
        "verdict": facts.standing.verdict,
        "window": window,
        "data": _build_charts(page),
        "header": header,
        "picker": header.picker,
        "clocks": [
            (words, replace_query(query, clock=name), name == page.clock)
            for name, words in (("gpu", "GPU time"), ("wall", "Wall time"))
        ],
        "last_minute": last,
        "awaited": chosen.live and (last is None or window.last - last <= MAX_REPORT_AGE_MINUTES),
        "heads": _order(query, whole=whole).heads(
            query, versions_columns(whole=whole), name="vsort", page="vpage"
        ),
        "paged": paginate(query, total=page.versions_total, size=MAX_VERSIONS_LISTED, name="vpage"),
        "switches": list_live_kill_switches(
            project_id=facts.model.project_id,
            model_id=facts.model.pk,
            environment=facts.standing.environment,
        )
        if request.membership.switched
        else [],
        "last_url": replace_query(
            query,
            range=chosen.key if chosen.key in SPAN_MINUTES else "",
            until=str(last + 1),
            to="",
            **{"from": ""},
        )
        if last
        else "",
        "query": query.urlencode(),
        "range_words": chosen.label if chosen.live and chosen.key in SPAN_MINUTES else "",
        "held": window.last - facts.standing.verdict.since_minute
        if facts.standing.verdict and facts.standing.verdict.since_minute and chosen.live
        else None,
    }
