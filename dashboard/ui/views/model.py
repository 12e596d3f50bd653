"""The Model page: how its versions compare over time, and the same numbers as JSON and CSV."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import render

from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.fleet.retention import minutes_kept_from
from dashboard.fleet.selectors.versions import model_find
from dashboard.ui.charts.trends import as_json
from dashboard.ui.charts.window import Window
from dashboard.ui.door import ProjectRequest, project_page
from dashboard.ui.exports import csv_response
from dashboard.ui.pages.model import ModelPage, model_page, table_of
from dashboard.ui.ranges import with_query
from dashboard.ui.selectors.model import Asked, model_facts

SPANS = {"1h": (60, 1), "6h": (360, 3), "24h": (1440, 10), "7d": (7 * 1440, 60)}
DEFAULT = "6h"
FURTHEST = 400 * 1440


@project_page()
def model(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The page."""
    page = _page(request, model_id)
    return render(request, "ui/model.html", _context(request, page))


@project_page()
def model_json(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The charts' numbers as the page draws them."""
    page = _page(request, model_id)
    return JsonResponse(_drawn(page))


@project_page()
def model_csv(request: ProjectRequest, model_id: int) -> HttpResponse:
    """A row a version and bin, a column a chart; an empty cell means no report."""
    page = _page(request, model_id)
    charts = [trend for trend in page.trends if trend.key != "cold_start"]
    rows: list[list[Any]] = [["version", "time", *(f"{trend.title} ({trend.unit})" for trend in charts)]]
    for version in page.facts.drawn:
        lines = [next(line for line in trend.lines if line.slot == version.slot) for trend in charts]
        for place, start in enumerate(page.facts.asked.window.starts()):
            rows.append([version.name, clock.at_minute(start).isoformat(), *(line.values[place] for line in lines)])
    return csv_response(rows, f"model-{model_id}-trends.csv")


def model_or_404(request: ProjectRequest, model_id: int) -> WatchedModel:
    """The model of this project."""
    found = model_find(project_id=request.project.pk, model_id=model_id)
    if found is None:
        raise Http404("There is no such model in this project.")
    return found


def whole_number(text: str | None) -> int | None:
    """A number out of an address; anything else is as if it was not there."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None


def span_of(query: QueryDict, *, minutes_from: int) -> tuple[str, Window]:
    """The range of the address: its name, and the bins up to `until` (a minute since 1970) or now.

    A range that begins before the minutes that are kept is drawn in hours."""
    key = query.get("range", DEFAULT)
    key = key if key in SPANS else DEFAULT
    now = clock.minute_of(clock.unix())
    until = whole_number(query.get("until"))
    end = until if until is not None and now - FURTHEST < until < now else now
    minutes, step = SPANS[key]
    window = Window.ending(end, minutes, step)
    return key, window if window.first >= minutes_from else Window.ending(end, minutes, 60)


def _span(request: ProjectRequest) -> tuple[str, Window]:
    return span_of(request.GET, minutes_from=minutes_kept_from(project=request.project, now=clock.unix()))


def _page(request: ProjectRequest, model_id: int) -> ModelPage:
    query = request.GET
    _, window = _span(request)
    asked = Asked(window, query.get("env", ""), query.get("region", ""), whole_number(query.get("version")))
    facts = model_facts(model=model_or_404(request, model_id), asked=asked)
    return model_page(facts, clock_asked=query.get("clock", ""))


def _drawn(page: ModelPage) -> dict[str, Any]:
    return as_json(page.facts.asked.window, page.facts.drawn, page.trends, page.marks)


def _context(request: ProjectRequest, page: ModelPage) -> dict[str, Any]:
    query, facts = request.GET, page.facts
    key, window = _span(request)
    tables = [version for version in facts.drawn if version.slot <= 2] or facts.drawn[:1]
    last = max((deployment.last_minute for deployment in facts.standing.deployments), default=None)
    return {
        "page": page,
        "facts": facts,
        "model": facts.model,
        "standing": facts.standing,
        "verdict": facts.standing.verdict,
        "window": window,
        "data": _drawn(page),
        "tables": table_of(page, tables),
        "ranges": [(_words(name), with_query(query, range=name, until=""), name == key) for name in SPANS],
        "environments": [
            (name, with_query(query, env=name, version=""), name == facts.standing.environment) for name in facts.standing.environments
        ],
        "regions": [(name, with_query(query, region=name), name == facts.region) for name in facts.regions],
        "clocks": [
            (words, with_query(query, clock=name), name == page.clock) for name, words in (("gpu", "GPU time"), ("wall", "Wall time"))
        ],
        "last_minute": last,
        "last_url": with_query(query, until=str(last + 1)) if last else "",
        "query": query.urlencode(),
        "range_words": _words(key),
        "held": window.last - facts.standing.verdict.since_minute
        if facts.standing.verdict and facts.standing.verdict.since_minute and "until" not in query
        else None,
    }


def _words(span: str) -> str:
    return f"{span[:-1]}\u00a0{span[-1]}"
