"""The Fleet page: current state of all models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from dashboard.common import clock
from dashboard.fleet.selectors.instances.silences import find_silences
from dashboard.regressions.models import VerdictKind
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.paging import paginate
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.http.time_range import RANGE_PRESETS, read_range_preset, replace_query
from dashboard.ui.layout.silence_banner import silence_banner
from dashboard.ui.pages.fleet.content import FleetContent, read_content, read_rows
from dashboard.ui.pages.fleet.deployments import build_fleet_lane
from dashboard.ui.pages.fleet.filters import MAX_LENGTH, list_chips
from dashboard.ui.pages.fleet.notes import list_blind_spots, list_changes
from dashboard.ui.pages.fleet.order import GROUPS, PAGE_SIZE, RowGroup, columns, cut_page
from dashboard.ui.pages.fleet.rows import FleetRow
from dashboard.ui.pages.fleet.saved_views import list_saved_views
from dashboard.ui.pages.kill_switch.queries import list_live_kill_switches
from dashboard.ui.pages.setup.checklist import read_checklist
from dashboard.vocabulary.severity import VERDICTS_BY_URGENCY

MAX_OPEN = 50


@require_safe
@project_page()
def fleet(request: ProjectRequest) -> HttpResponse:
    """One row per model, most urgent first. The page polls the part that changes."""
    context = _build_context(request)
    part = render_to_string("ui/fleet/live.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    frame = context | _controls(request) | {"part": part, "etag": fragment_etag(part)}
    return mark_uncached(render(request, "ui/fleet/page.html", frame))


def _build_context(request: ProjectRequest) -> dict[str, Any]:
    content, chosen = read_content(request), read_range_preset(request.GET)
    matching = content.matching
    page = paginate(request.GET, total=len(matching), size=PAGE_SIZE)
    shown = cut_page(content.groups, page.first, page.size)
    rows = read_rows(content, [one for group in shown for one in group.shown])
    lane, changed = build_fleet_lane(
        request.project.slug, content.states, content.said, content.window
    )
    silence = silence_banner(
        find_silences(content.facts.instances, clock.now()).fleet, content.alerts
    )
    return {
        "project": request.project,
        "groups": _group_rows(request, {row.state.model.pk: row for row in rows}, shown),
        "grouped": content.group in GROUPS,
        "heads": content.order.heads(request.GET, columns(chosen.label)),
        "page": page,
        "total": len(content.states),
        "matching": len(matching),
        "any_model": bool(content.facts.models),
        "checklist": None if content.facts.models else read_checklist(project=request.project),
        "chosen": chosen,
        "silence": silence,
        "lane": lane,
        "changed_models": changed,
        "changes": list_changes(
            facts=content.facts, verdicts=content.said.changes, window=content.window
        ),
        "unseen": list_blind_spots(
            rows=rows, facts=content.facts, instance_states=content.instance_states
        ),
        **_list_filters(request, content),
        "switches": list_live_kill_switches(
            project_id=request.project.pk, environment=content.environment
        )
        if request.membership.switched
        else [],
    }


def _list_filters(request: ProjectRequest, content: FleetContent) -> dict[str, Any]:
    query = request.GET
    return {
        "verdict": query.get("verdict", ""),
        "counts": _counts(request, content),
        "environment": content.environment,
        "environments": content.facts.environments,
        "chips": list_chips(query, content.terms, content.environment),
        "all_models_query": replace_query(query, verdict="", page=""),
        "clear_query": replace_query(query, verdict="", q="", env="", page=""),
    }


def _group_rows(
    request: ProjectRequest, rows: Mapping[int, FleetRow], shown: list[RowGroup]
) -> list[dict[str, Any]]:
    """The groups of the page; each row with whether its sentence is open, and the address that
    opens or closes it."""
    asked = request.GET.get("open", "").split(",")[:MAX_OPEN]
    opened = [int(text) for text in asked if text.isascii() and text.isdecimal()]
    found = []
    for group in shown:
        members = []
        for state in group.shown:
            pk = state.model.pk
            kept = [one for one in opened if one != pk] + ([] if pk in opened else [pk])
            toggle = replace_query(request.GET, open=",".join(map(str, kept)))
            members.append((rows[pk], state.urgent or pk in opened, toggle))
        found.append({"group": group, "rows": members})
    return found


def _counts(request: ProjectRequest, content: FleetContent) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind.value,
            "count": content.counts[kind.value],
            "label": kind.label.lower(),
            "current": request.GET.get("verdict") == kind.value,
            "query": replace_query(request.GET, verdict=kind.value, page=""),
        }
        for kind in map(VerdictKind, VERDICTS_BY_URGENCY)
    ]


def _controls(request: ProjectRequest) -> dict[str, Any]:
    query, chosen = request.GET, read_range_preset(request.GET)
    kept = ("verdict", "sort", "range")
    return {
        "ranges": [
            (one.label, replace_query(query, range=one.key), one.key, one == chosen)
            for one in RANGE_PRESETS
        ],
        "kinds": VerdictKind,
        "filter_text": query.get("q", "")[:MAX_LENGTH],
        "max_length": MAX_LENGTH,
        "kept": [(name, query[name]) for name in kept if query.get(name)],
        "group_options": [
            ("", "No group", query.get("group", "") not in GROUPS),
            *(
                (key, f"Group: {noun}", query.get("group") == key)
                for key, (noun, _) in GROUPS.items()
            ),
        ],
        **list_saved_views(request),
    }
