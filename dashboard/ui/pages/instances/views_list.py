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
from dashboard.regressions.evidence_reader import read_changes
from dashboard.ui.charts.heatmap import find_measure, list_measures
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
from dashboard.ui.pages.model.header import (
    KEPT,
    build_model_header,
    read_chosen_verdicts,
    read_model_range,
)
from dashboard.ui.pages.model.lookup import model_or_404, parse_whole_number
from dashboard.ui.pages.model.verdict_queries import ModelVerdicts
from dashboard.vocabulary import numbers

SPANS = ("1h", "6h", "24h")
MAX_MINUTES, MAX_SLOTS = 1440, 60
"""Maximum length of the strips, and of their cells."""
PAGE_SIZE = 50


@require_safe
@project_page()
def instances(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The page, or the part of it that scripts poll."""
    model = model_or_404(request, model_id)
    standing = read_chosen_verdicts(request.GET, model)
    context = _context(request, model, standing, _page(request, model, standing))
    part = render_to_string("ui/instances/live.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    context["polled"] = True
    context["header"] = build_model_header(
        request, model, active="instances", standing=standing, spans=SPANS
    )
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
    model = model_or_404(request, model_id)
    page = _page(request, model, read_chosen_verdicts(request.GET, model))
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
    model = model_or_404(request, model_id)
    page = _page(request, model, read_chosen_verdicts(request.GET, model))
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
        Column("p50", right=True, unit="last 15 min"),
        Column("Eager", "eager", right=True, most_first=True),
        Column("Compiling", right=True, unit="last 15 min"),
        Column("Started", "started", right=True, most_first=True),
        Column("Last report", "seen", right=True, most_first=True),
    )


def _order(request: ProjectRequest, strip: str) -> Order:
    return Order.read(request.GET, _columns(strip), "state")


def _list_identity(one: Instance) -> tuple[str, str, int, str, str, str]:
    return one.instance_id, one.host, one.rank, one.job, one.version.name, one.gpu


def _list_details(one: Instance) -> tuple[str | int | None, ...]:
    """Name, identity, exit and node of the instance."""
    return process_name(one), one.role, one.pid, *serialize_ending(one).values(), one.node


def _page(request: ProjectRequest, model: WatchedModel, standing: ModelVerdicts) -> InstancesPage:
    query = request.GET
    chosen = read_model_range(query, model, standing)
    minutes = min(chosen.minutes, MAX_MINUTES)
    step = -(-minutes // MAX_SLOTS)
    minutes, last = -(-minutes // step) * step, -(-chosen.last // step) * step
    state, order = query.get("state", ""), _order(request, "")
    asked = InstancesQuery(
        slots=Slots(Span(last - minutes, last), step),
        since=clock.at_minute(chosen.last - max(minutes, 30)),
        environment=standing.environment,
        version_id=parse_whole_number(query.get("version")),
        baseline_id=standing.baseline.pk if standing.baseline else None,
        gpu=query.get("gpu", ""),
        state=state if state in InstanceState.values else "",
        text=query.get("q", "").strip()[:200],
        sort=order.key,
        descending=order.descending,
        page=read_page_number(query),
        size=PAGE_SIZE,
    )
    return instances_page(
        read_instances_data(model=model, asked=asked),
        find_measure(
            list_measures(baseline=standing.baseline is not None),
            query.get("show", ""),
            _driving_metric(standing),
        ),
    )


def _driving_metric(standing: ModelVerdicts) -> str:
    """The metric that drives the verdict; empty if none does."""
    evidence = standing.verdict.evidence if standing.verdict else {}
    return next((one.metric for one in read_changes(evidence) if one.drives), "")


def _context(
    request: ProjectRequest, model: WatchedModel, standing: ModelVerdicts, page: InstancesPage
) -> dict[str, Any]:
    query, span = request.GET, page.facts.levels.slots.span
    range_words = numbers.format_coarse_duration((span.last - span.first) * 60)
    strip = f"{page.measure.title}, last {range_words}"
    state = query.get("state", "")
    return {
        "project": request.project,
        "model": model,
        "page": page,
        "facts": page.facts,
        "paged": paginate(query, total=len(page.facts.fitting), size=PAGE_SIZE),
        "query": replace_query(query, env=standing.environment).removeprefix("?"),
        "range_words": range_words,
        "measures": [
            (one.title, replace_query(query, show=one.key), one.key == page.measure.key)
            for one in list_measures(baseline=standing.baseline is not None)
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
            for key in ("version", "gpu", "q", "state", "sort", "show", *KEPT[1:])
        },
        "filtered": any(query.get(key) for key in ("version", "gpu", "q", "state")),
        "full": len(page.facts.everyone) >= MAX_INSTANCES,
    }
