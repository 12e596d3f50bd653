"""The Model page: how its versions compare over time, and the same numbers as JSON and CSV."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.alerts.current_verdict import ranks_alert
from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.fleet.retention import minutes_kept_from
from dashboard.fleet.selectors.instances.silences import silences_of
from dashboard.fleet.selectors.versions.versions import model_find
from dashboard.ui.charts.metric_values import COLD_START
from dashboard.ui.charts.trends import as_json
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.paging import page_asked, paged
from dashboard.ui.http.partials import json_tagged, uncached
from dashboard.ui.http.sortable_table import Order
from dashboard.ui.http.time_range import SPANS, USUAL, Chosen, picker_of, range_chosen, with_query
from dashboard.ui.layout.silence_banner import SilenceBanner, silence_banner
from dashboard.ui.pages.model import ModelPage, model_page, table_of
from dashboard.ui.pages.trends_csv import bins_of, starts_of
from dashboard.ui.pages.versions_table import versions_columns, versions_sorted
from dashboard.ui.selectors.kill_switch import switches_live
from dashboard.ui.selectors.model import VERSIONS_LISTED, Asked, model_facts, model_standing
from dashboard.ui.selectors.versions import versions_listed

AWAITED = 10
"""Minutes after its newest report in which a page without charts expects them."""


@require_safe
@project_page()
def model(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The page."""
    page, chosen = _page(request, model_id)
    return uncached(render(request, "ui/model.html", _context(request, page, chosen)))


@require_safe
@project_page()
def model_json(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The charts' numbers as the page draws them; 304 for who has them. A page that waits for its first charts is told to load again."""
    page, _ = _page(request, model_id)
    if request.headers.get("HX-Request"):
        return uncached(HttpResponse(status=204, headers={} if page.silent else {"HX-Refresh": "true"}))
    return json_tagged(request, _drawn(page))


@require_safe
@project_page()
def model_csv(request: ProjectRequest, model_id: int) -> HttpResponse:
    """A row a version and bin, a column a chart, or the one chart that is asked for; an empty cell means no report."""
    page, _ = _page(request, model_id)
    key = request.GET.get("chart", "")
    if key == COLD_START.key:
        return csv_response(starts_of(page), f"model-{model_id}-{key}.csv")
    charts = [trend for trend in page.trends if trend.key == key] or [trend for trend in page.trends if trend.key != COLD_START.key]
    return csv_response(bins_of(page, charts), f"model-{model_id}-{key if len(charts) == 1 else 'trends'}.csv")


@require_safe
@project_page()
def model_numbers(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The charts' numbers as tables, the baseline's and the judged version's: a part of the page once somebody unfolds it, else a page."""
    page, _ = _page(request, model_id)
    drawn = [version for version in page.facts.drawn if version.slot <= 2] or page.facts.drawn[:1]
    context = {
        "tables": table_of(page, drawn),
        "window": page.facts.asked.window,
        "model": page.facts.model,
        "query": request.GET.urlencode(),
    }
    part = "ui/model_numbers.html" if request.headers.get("HX-Request") else "ui/model_numbers_page.html"
    return uncached(render(request, part, context))


def model_or_404(request: ProjectRequest, model_id: int) -> WatchedModel:
    """The model of this project."""
    found = model_find(project_id=request.project.pk, model_id=model_id)
    if found is None:
        raise Http404("There is no such model in this project.")
    return found


def whole_number(text: str | None) -> int | None:
    """A number out of an address; anything else is as if it was not there."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None


def _page(request: ProjectRequest, model_id: int) -> tuple[ModelPage, Chosen]:
    query, found, now = request.GET, model_or_404(request, model_id), clock.unix()
    environment, version = query.get("env", ""), whole_number(query.get("version"))
    standing = model_standing(model=found, environment=environment, version_id=version)
    since = standing.judged.started_minute if standing.judged else None
    # A line of a few minutes would be a dot in six hours.
    young = now - found.first_seen_at.timestamp() < 3600
    chosen = range_chosen(query, now=clock.minute_of(now), since=since, usual="1h" if young else USUAL)
    window = chosen.bins(minutes_from=minutes_kept_from(project=request.project, now=now))
    order = _order(query, whole=True)
    listed = versions_listed(model=found, standing=standing, order=order, page=page_asked(query, name="vpage"))
    asked = Asked(window, environment, query.get("region", ""), version, tuple(listed.ids))
    page = model_page(model_facts(model=found, asked=asked, standing=standing), clock_asked=query.get("clock", ""))
    if listed.whole:
        page.versions = versions_sorted(page.versions, order)
    diverged = ranks_alert(deployment_id=page.alert.deployment_id) if page.alert else None
    return replace(page, versions_total=listed.total, ranks_alert=diverged.number if diverged else None), chosen


def _order(query: QueryDict, *, whole: bool) -> Order:
    return Order.read(query, versions_columns(whole=whole), "usual", name="vsort")


def _drawn(page: ModelPage) -> dict[str, Any]:
    """The charts, and `said`: what the rest of the page rests on. Where that changes, the page has to be loaded again."""
    verdict = page.facts.standing.verdict
    said = [verdict.pk if verdict else None, *(version.id for version in page.facts.drawn)]
    return as_json(page.facts.asked.window, page.facts.drawn, page.trends, page.marks) | {"said": said}


def _silence(page: ModelPage) -> SilenceBanner | None:
    facts = page.facts
    found = silences_of((one.instance for one in facts.reporting), clock.now()).models.get(facts.model.pk)
    return silence_banner(found, facts.alerts, model_id=facts.model.pk, name=facts.model.name)


def _context(request: ProjectRequest, page: ModelPage, chosen: Chosen) -> dict[str, Any]:
    query, facts = request.GET, page.facts
    window = facts.asked.window
    whole = page.versions_total <= VERSIONS_LISTED
    last = max((deployment.last_minute for deployment in facts.standing.deployments), default=None)
    return {
        "page": page,
        "silence": _silence(page),
        "facts": facts,
        "model": facts.model,
        "standing": facts.standing,
        "verdict": facts.standing.verdict,
        "window": window,
        "data": _drawn(page),
        "picker": picker_of(query, chosen, deployed=facts.standing.judged is not None),
        "environments": [
            (name, with_query(query, env=name, version=""), name == facts.standing.environment) for name in facts.standing.environments
        ],
        "regions": [(name, with_query(query, region=name), name == facts.region) for name in facts.regions],
        "clocks": [
            (words, with_query(query, clock=name), name == page.clock) for name, words in (("gpu", "GPU time"), ("wall", "Wall time"))
        ],
        "last_minute": last,
        "awaited": chosen.live and (last is None or window.last - last <= AWAITED),
        "heads": _order(query, whole=whole).heads(query, versions_columns(whole=whole), name="vsort", page="vpage"),
        "paged": paged(query, total=page.versions_total, size=VERSIONS_LISTED, name="vpage"),
        "switches": switches_live(project_id=facts.model.project_id, model_id=facts.model.pk, environment=facts.standing.environment)
        if request.membership.switched
        else [],
        "last_url": with_query(query, range=chosen.key if chosen.key in SPANS else "", until=str(last + 1), to="", **{"from": ""})
        if last
        else "",
        "query": query.urlencode(),
        "range_words": chosen.label,
        "held": window.last - facts.standing.verdict.since_minute
        if facts.standing.verdict and facts.standing.verdict.since_minute and chosen.live
        else None,
    }
