"""The Model page: its versions over time; the same numbers as JSON and CSV."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.alerts.current_verdict import find_divergence_alert
from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.fleet.retention import find_first_kept_minute
from dashboard.fleet.selectors.instances.silences import find_silences
from dashboard.fleet.selectors.versions.versions import find_model
from dashboard.ui.charts.metric_values import COLD_START
from dashboard.ui.charts.trends import serialize_trends
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.paging import paginate, read_page_number
from dashboard.ui.http.partials import mark_uncached, respond_json
from dashboard.ui.http.sortable_table import Order
from dashboard.ui.http.time_range import (
    DEFAULT_SPAN,
    SPAN_MINUTES,
    TimeRange,
    build_range_picker,
    read_time_range,
    replace_query,
)
from dashboard.ui.layout.silence_banner import SilenceBanner, silence_banner
from dashboard.ui.pages.kill_switch.queries import list_live_kill_switches
from dashboard.ui.pages.model.last_week import Place, read_last_week, shift_window
from dashboard.ui.pages.model.presenter import ModelPage, model_page, tabulate_charts
from dashboard.ui.pages.model.queries import (
    MAX_VERSIONS_LISTED,
    ModelQuery,
    read_model_data,
    read_model_verdicts,
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
    page, chosen = _page(request, model_id)
    return mark_uncached(render(request, "ui/model/page.html", _context(request, page, chosen)))


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


def model_or_404(request: ProjectRequest, model_id: int) -> WatchedModel:
    """The model of this project."""
    found = find_model(project_id=request.project.pk, model_id=model_id)
    if found is None:
        raise Http404("Model not found in this project.")
    return found


def parse_whole_number(text: str | None) -> int | None:
    """A number from the URL, or None if it is invalid."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None


def _page(request: ProjectRequest, model_id: int) -> tuple[ModelPage, TimeRange]:
    query, found, now = request.GET, model_or_404(request, model_id), clock.unix()
    environment, version = query.get("env", ""), parse_whole_number(query.get("version"))
    standing = read_model_verdicts(model=found, environment=environment, version_id=version)
    since = standing.judged.started_minute if standing.judged else None
    # In six hours, a line of a few minutes would be a dot.
    young = now - found.first_seen_at.timestamp() < 3600
    chosen = read_time_range(
        query, now=clock.minute_of(now), since=since, usual="1h" if young else DEFAULT_SPAN
    )
    window = chosen.bins(minutes_from=find_first_kept_minute(project=request.project, now=now))
    order = _order(query, whole=True)
    listed = list_versions(
        model=found, standing=standing, order=order, page=read_page_number(query, name="vpage")
    )
    asked = ModelQuery(window, environment, query.get("region", ""), version, tuple(listed.ids))
    page = model_page(
        read_model_data(model=found, asked=asked, standing=standing),
        clock_asked=query.get("clock", ""),
    )
    if listed.whole:
        page.versions = sort_versions(page.versions, order)
    diverged = find_divergence_alert(deployment_id=page.alert.deployment_id) if page.alert else None
    return replace(
        page, versions_total=listed.total, ranks_alert=diverged.number if diverged else None
    ), chosen


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


def _context(request: ProjectRequest, page: ModelPage, chosen: TimeRange) -> dict[str, Any]:
    query, facts = request.GET, page.facts
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
        "picker": build_range_picker(query, chosen, deployed=facts.standing.judged is not None),
        "environments": [
            (name, replace_query(query, env=name, version=""), name == facts.standing.environment)
            for name in facts.standing.environments
        ],
        "regions": [
            (name, replace_query(query, region=name), name == facts.region)
            for name in facts.regions
        ],
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
