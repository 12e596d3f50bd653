"""The instances of a model and their differences; the same rows as JSON and CSV."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from dashboard.common import clock
from dashboard.fleet.models import Instance, InstanceState, WatchedModel
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.instances.instance_heatmap import Slots
from dashboard.fleet.selectors.instances.instance_list import MAX_INSTANCES
from dashboard.fleet.selectors.versions.version_series import Span
from dashboard.ui.charts.heatmap import MEASURES, find_measure
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.paging import paginate, read_page_number
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.http.sortable_table import Column, Order
from dashboard.ui.http.time_range import replace_query
from dashboard.ui.pages.instances.list import (
    InstancesPage,
    instances_page,
    serialize_ending,
    serialize_rows,
)
from dashboard.ui.pages.instances.queries import InstancesQuery, read_instances_data
from dashboard.ui.pages.model.views import model_or_404, parse_whole_number

SPAN_AND_SLOT_MINUTES = {"1h": (60, 1), "6h": (360, 6), "24h": (1440, 24)}
"""Minutes of a range, and of each cell of a strip."""
PAGE_SIZE = 50


@require_safe
@project_page()
def instances(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The page, or the part of it that scripts poll."""
    model = model_or_404(request, model_id)
    context = _context(request, model, _page(request, model, PAGE_SIZE))
    part = render_to_string("ui/instances/live.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    return mark_uncached(
        render(
            request, "ui/instances/page.html", context | {"part": part, "etag": fragment_etag(part)}
        )
    )


@require_safe
@project_page()
def instances_json(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The rows of the page from the URL, with all cells of their strips, and the trait
    differences."""
    page = _page(request, model_or_404(request, model_id), PAGE_SIZE)
    lines = [
        {
            "what": one.key,
            "value": one.value,
            "counts": one.counts,
            "sure": one.sure,
            "also": one.also,
        }
        for one in page.differs.lines
    ]
    states = {state.value: count for state, count in page.states}
    return JsonResponse(
        {
            "total": len(page.facts.fitting),
            "states": states,
            "instances": serialize_rows(page),
            "helpers": Counter(one.role for one in page.facts.helpers),
            "differs": lines,
        }
    )


@require_safe
@project_page()
def instances_csv(request: ProjectRequest, model_id: int) -> HttpResponse:
    """All instances that match the filter, without the strips."""
    page = _page(request, model_or_404(request, model_id), PAGE_SIZE)
    head = [
        "instance",
        "host",
        "rank",
        "job",
        "version",
        "gpu",
        "state",
        "started",
        "last report",
        "clock offset (s)",
        "late windows",
    ]
    head += ["name", "role", "pid", "ended", "exit code", "exit signal", "node"]
    rows = [
        (
            *_list_identity(one),
            state.value,
            one.started_at.isoformat(),
            one.last_seen_at.isoformat(),
            one.clock_offset,
            one.late_windows,
            *_list_details(one),
        )
        for one, state in page.facts.fitting
    ]
    return csv_response([head, *rows], f"model-{model_id}-instances.csv")


def _columns(strip: str) -> tuple[Column, ...]:
    return (
        Column("Instance", "name"),
        Column("Version"),
        Column("State", "state"),
        Column(strip),
        Column("Eager now", "eager", right=True, most_first=True),
        Column("Started", "started", right=True, most_first=True),
        Column("Last report", "seen", right=True, most_first=True),
        Column("Lost"),
    )


def _order(request: ProjectRequest, strip: str) -> Order:
    return Order.read(request.GET, _columns(strip), "state")


def _list_identity(one: Instance) -> tuple[str, str, int, str, str, str]:
    return one.instance_id, one.host, one.rank, one.job, one.version.name, one.gpu


def _list_details(one: Instance) -> tuple[str | int | None, ...]:
    """Name, identity, exit and node of the instance."""
    return process_name(one), one.role, one.pid, *serialize_ending(one).values(), one.node


def _page(request: ProjectRequest, model: WatchedModel, size: int) -> InstancesPage:
    query = request.GET
    minutes, step = SPAN_AND_SLOT_MINUTES[_range(request)]
    end = clock.minute_of(clock.unix())
    last = -(-end // step) * step
    state, order = query.get("state", ""), _order(request, "")
    asked = InstancesQuery(
        slots=Slots(Span(last - minutes, last), step),
        since=clock.at_minute(end - max(minutes, 30)),
        environment=query.get("env", ""),
        version_id=parse_whole_number(query.get("version")),
        gpu=query.get("gpu", ""),
        state=state if state in InstanceState.values else "",
        text=query.get("q", "").strip()[:200],
        sort=order.key,
        descending=order.descending,
        page=read_page_number(query),
        size=size,
    )
    return instances_page(
        read_instances_data(model=model, asked=asked), find_measure(query.get("show", ""))
    )


def _range(request: ProjectRequest) -> str:
    key = request.GET.get("range", "")
    return key if key in SPAN_AND_SLOT_MINUTES else "6h"


def _context(request: ProjectRequest, model: WatchedModel, page: InstancesPage) -> dict[str, Any]:
    query, chosen = request.GET, _range(request)
    strip = f"{page.measure.title}, last {chosen[:-1]}\u00a0{chosen[-1]}"
    state = query.get("state", "")
    return {
        "project": request.project,
        "model": model,
        "page": page,
        "facts": page.facts,
        "paged": paginate(query, total=len(page.facts.fitting), size=PAGE_SIZE),
        "query": query.urlencode(),
        "range_words": f"{chosen[:-1]}\u00a0{chosen[-1]}",
        "ranges": [
            (f"{key[:-1]}\u00a0{key[-1]}", replace_query(query, range=key, page=""), key == chosen)
            for key in SPAN_AND_SLOT_MINUTES
        ],
        "measures": [
            (one.title, replace_query(query, show=one.key), one.key == page.measure.key)
            for one in MEASURES
        ],
        "heads": _order(request, strip).heads(query, _columns(strip)),
        "states": [
            (
                one,
                count,
                replace_query(query, state="" if one == state else one.value, page=""),
                one == state,
            )
            for one, count in page.states
        ],
        "any_state": replace_query(query, state="", page=""),
        "wanted": {
            key: query.get(key, "")
            for key in ("version", "gpu", "q", "state", "sort", "show", "range")
        },
        "filtered": any(query.get(key) for key in ("version", "gpu", "q", "state")),
        "environments": [
            (
                name,
                replace_query(query, env=name, version="", page=""),
                name == page.facts.environment,
            )
            for name in page.environments
        ],
        "full": len(page.facts.everyone) >= MAX_INSTANCES,
    }
