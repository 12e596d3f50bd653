"""The Fleet page: current state of all models."""

from collections import Counter
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from dashboard.alerts.models import AlertCause
from dashboard.common import clock
from dashboard.fleet.selectors.instances.instance_states import instance_state
from dashboard.fleet.selectors.instances.silences import find_silences
from dashboard.fleet.selectors.versions.fleet_page import read_fleet
from dashboard.regressions.models import VerdictKind
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.http.time_range import (
    RANGE_PRESETS,
    build_window,
    read_range_preset,
    replace_query,
)
from dashboard.ui.layout.silence_banner import silence_banner
from dashboard.ui.pages.fleet.notes import list_blind_spots, list_changes
from dashboard.ui.pages.fleet.queries import list_open_alerts, read_fleet_verdicts
from dashboard.ui.pages.fleet.rows import fleet_rows
from dashboard.ui.pages.kill_switch.queries import list_live_kill_switches
from dashboard.vocabulary.severity import VERDICTS_BY_URGENCY


@require_safe
@project_page()
def fleet(request: ProjectRequest) -> HttpResponse:
    """One row per model, most urgent first. The page polls the part that changes."""
    context = fleet_content(request)
    part = render_to_string("ui/fleet/live.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    frame = context | _controls(request) | {"part": part, "etag": fragment_etag(part)}
    return mark_uncached(render(request, "ui/fleet/page.html", frame))


def fleet_content(request: ProjectRequest) -> dict[str, Any]:
    chosen = read_range_preset(request.GET)
    window, now = build_window(chosen), clock.now()
    project, environment = request.project, request.GET.get("env", "")
    facts = read_fleet(project=project, window=window, environment=environment)
    any_alert = bool(request.membership.open_alerts)
    said = read_fleet_verdicts(
        project_id=project.pk, start_minute=window.start, environment=environment, alerts=any_alert
    )
    states = {one.pk: instance_state(one, now) for one in facts.instances}
    alerts = list_open_alerts(project_id=project.pk) if any_alert else []
    of_models = [alert for alert in alerts if alert.cause != AlertCause.FLEET_SILENCE]
    rows = fleet_rows(
        facts=facts,
        said=said,
        alerts=of_models,
        window=window,
        states=states,
        everywhere=not environment,
    )
    shown = [row for row in rows if row.kind == request.GET.get("verdict", row.kind)]
    return {
        "project": project,
        "rows": shown,
        "counts": _counts(request, [row.kind for row in rows]),
        "total": len(rows),
        "all_models_query": replace_query(request.GET, verdict=""),
        "any_model": bool(facts.models),
        "environment": environment,
        "chosen": chosen,
        "silence": silence_banner(find_silences(facts.instances, now).fleet, alerts),
        "window": window,
        "changes": list_changes(facts=facts, verdicts=said.changes, window=window),
        "unseen": list_blind_spots(rows=rows, instances=facts.instances, states=states),
        "verdict": request.GET.get("verdict", ""),
        "switches": list_live_kill_switches(project_id=project.pk, environment=environment)
        if request.membership.switched
        else [],
        "environments": [
            (name, replace_query(request.GET, env=name), name == environment)
            for name in facts.environments
        ],
    }


def _counts(request: ProjectRequest, kinds: list[str]) -> list[dict[str, Any]]:
    counts = Counter(kinds)
    return [
        {
            "kind": kind.value,
            "count": counts[kind.value],
            "label": kind.label.lower(),
            "current": request.GET.get("verdict") == kind.value,
            "query": replace_query(request.GET, verdict=kind.value),
        }
        for kind in map(VerdictKind, VERDICTS_BY_URGENCY)
    ]


def _controls(request: ProjectRequest) -> dict[str, Any]:
    chosen = read_range_preset(request.GET)
    return {
        "ranges": [
            (one.label, replace_query(request.GET, range=one.key), one == chosen)
            for one in RANGE_PRESETS
        ],
        "all_environments_query": replace_query(request.GET, env=""),
        "kinds": VerdictKind,
    }
