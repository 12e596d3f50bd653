"""The Overview of a model; the numbers of its charts as JSON and CSV."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.alerts.current_verdict import find_divergence_alert
from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.fleet.retention import find_first_kept_minute
from dashboard.fleet.selectors.instances.silences import find_silences
from dashboard.regressions.evidence_reader import find_rank_divergence
from dashboard.ui.charts.metric_values import COLD_START
from dashboard.ui.charts.trends import serialize_trends
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import mark_uncached, respond_json
from dashboard.ui.http.time_range import SPAN_MINUTES, TimeRange, replace_query
from dashboard.ui.layout.silence_banner import SilenceBanner, silence_banner
from dashboard.ui.pages.kill_switch.queries import list_live_kill_switches
from dashboard.ui.pages.model.header import (
    Choice,
    ModelHeader,
    build_model_header,
    read_chosen_verdicts,
    read_model_range,
)
from dashboard.ui.pages.model.header_queries import HeaderData
from dashboard.ui.pages.model.last_week import Place, read_last_week, shift_window
from dashboard.ui.pages.model.lookup import model_or_404 as model_or_404
from dashboard.ui.pages.model.lookup import parse_whole_number as parse_whole_number
from dashboard.ui.pages.model.presenter import ModelPage, add_answer, model_page, tabulate_charts
from dashboard.ui.pages.model.queries import list_reporting, read_model_data
from dashboard.ui.pages.model.trends_csv import tabulate_bins, tabulate_starts
from dashboard.ui.pages.model.verdict_queries import ModelVerdicts

MAX_REPORT_AGE_MINUTES = 10
"""Minutes after its latest report in which a page without charts waits for them."""


@require_safe
@project_page()
def model(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The page."""
    found = model_or_404(request, model_id)
    header = build_model_header(request, found, active="overview")
    page = _read_page(request, found, header.standing, header.range)
    add_answer(page, live=header.range.live)
    regions = [
        Choice(name, replace_query(request.GET, region=name), name == page.facts.region)
        for name in page.facts.regions
        if len(page.facts.regions) > 1
    ]
    context = _context(request, page, replace(header, regions=regions))
    return mark_uncached(render(request, "ui/model/page.html", context))


@require_safe
@project_page()
def model_json(request: ProjectRequest, model_id: int) -> HttpResponse:
    """Data of the charts as the page draws them; 304 if unchanged. Asks a page that waits for its
    first charts to reload."""
    page = _read_charts(request, model_id)
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
    page = _read_charts(request, model_id)
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
    page = _read_charts(request, model_id)
    drawn = [version for version in page.facts.drawn if version.slot <= 2] or page.facts.drawn[:1]
    context = {
        "tables": tabulate_charts(page, drawn),
        "window": page.facts.window,
        "model": page.facts.model,
        "query": request.GET.urlencode(),
    }
    part = (
        "ui/model/numbers.html"
        if request.headers.get("HX-Request")
        else "ui/model/numbers_page.html"
    )
    return mark_uncached(render(request, part, context))


def _read_page(
    request: ProjectRequest, found: WatchedModel, standing: ModelVerdicts, chosen: TimeRange
) -> ModelPage:
    query, now = request.GET, clock.unix()
    facts = read_model_data(
        model=found,
        standing=standing,
        window=chosen.bins(minutes_from=find_first_kept_minute(project=request.project, now=now)),
        region=query.get("region", ""),
    )
    return model_page(facts, clock_asked=query.get("clock", ""))


def _read_charts(request: ProjectRequest, model_id: int) -> ModelPage:
    """The charts without the rest of the page."""
    found = model_or_404(request, model_id)
    standing = read_chosen_verdicts(request.GET, found)
    return _read_page(request, found, standing, read_model_range(request.GET, found, standing))


def _read_last_week(page: ModelPage) -> dict[str, Any]:
    """The charts seven days earlier, of the versions that ran then."""
    facts = page.facts
    window = shift_window(facts.window)
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
    return serialize_trends(page.facts.window, page.facts.drawn, page.trends, page.marks) | {
        "said": said
    }


def _read_silence(page: ModelPage, counts: HeaderData) -> SilenceBanner | None:
    """The banner. While at least half of the instances report, they need not be read."""
    facts, silence = page.facts, None
    if counts.heard * 2 < counts.instances:
        reporting = list_reporting(facts.model, facts.standing.environment)
        silences = find_silences((one.instance for one in reporting), clock.now())
        silence = silences.models.get(facts.model.pk)
    return silence_banner(silence, facts.alerts, model_id=facts.model.pk, name=facts.model.name)


def _find_rank_alert(page: ModelPage, header: ModelHeader) -> int | None:
    """The number of the open alert about diverged ranks of the evaluated version."""
    judged, verdict = page.facts.standing.judged, header.verdict
    if judged is None or header.alert is None:
        return None
    if verdict is not None and find_rank_divergence(verdict.evidence):
        return header.alert.number
    if not header.counts.has_ranks:
        return None
    found = find_divergence_alert(deployment_id=judged.pk)
    return found.number if found else None


def _context(request: ProjectRequest, page: ModelPage, header: ModelHeader) -> dict[str, Any]:
    query, facts, chosen = request.GET, page.facts, header.range
    window = facts.window
    last = max((deployment.last_minute for deployment in facts.standing.deployments), default=None)
    return {
        "page": page,
        "silence": _read_silence(page, header.counts),
        "ranks_alert": _find_rank_alert(page, header),
        "facts": facts,
        "model": facts.model,
        "standing": facts.standing,
        "verdict": facts.standing.verdict,
        "window": window,
        "data": _build_charts(page),
        "header": header,
        "polled": chosen.live and not page.silent,
        "picker": header.picker,
        "clocks": [
            (words, replace_query(query, clock=name), name == page.clock)
            for name, words in (("gpu", "GPU time"), ("wall", "Wall time"))
        ],
        "last_minute": last,
        "awaited": chosen.live and (last is None or window.last - last <= MAX_REPORT_AGE_MINUTES),
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
    }
