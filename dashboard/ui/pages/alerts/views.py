"""The Alert page, and the actions on one alert."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.alerts.models import Alert, AlertCause, AlertState, EventKind
from dashboard.alerts.services import (
    AlertActionError,
    alert_acknowledge,
    alert_dismiss,
    alert_note,
    alert_resolve,
    alert_snooze,
    alert_undo,
)
from dashboard.common import clock
from dashboard.fleet.selectors.versions.current_traffic import CurrentTraffic
from dashboard.projects.models import Role
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.http.return_address import redirect_back
from dashboard.ui.pages.alerts import timeline
from dashboard.ui.pages.alerts.affected_ranks import alert_ranks
from dashboard.ui.pages.alerts.answer import build_alert_answer
from dashboard.ui.pages.alerts.driving import build_driving
from dashboard.ui.pages.alerts.evidence import build_evidence
from dashboard.ui.pages.alerts.page_links import build_page_links
from dashboard.ui.pages.alerts.queries import alert_or_404, read_alert_data
from dashboard.ui.pages.alerts.runbook import build_runbook
from dashboard.ui.pages.alerts.silence_chart import draw_silence_chart

SNOOZE_HOURS = {"1": "1\u00a0hour", "4": "4\u00a0hours", "24": "1\u00a0day", "168": "7\u00a0days"}
TONES = {"roll_back": "rollback", "watch": "watch"}


@require_safe
@project_page()
def alert(request: ProjectRequest, number: int) -> HttpResponse:
    """One alert: the answer, its chart, evidence, runbook and activity."""
    context = _content(request, number)
    part = render_to_string("ui/alerts/live.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    return mark_uncached(
        render(
            request,
            "ui/alerts/page.html",
            context | {"part": part, "etag": fragment_etag(part)},
        )
    )


@require_POST
@project_page(Role.OPERATOR)
def alert_act(request: ProjectRequest, number: int, action: str) -> HttpResponse:
    """Acts on an alert, or undoes the last action, and shows the result on the page."""
    act = ACTIONS.get(action)
    if act is None:
        raise Http404("Action not found.")
    try:
        said = act(
            alert_or_404(project=request.project, number=number),
            request,
            request.POST.get("note", "").strip(),
        )
    except AlertActionError as error:
        messages.error(request, error.sentence)
    else:
        undo = reverse("alert_act", args=[request.project.slug, number, "undo"])
        messages.success(request, said, extra_tags=undo if action in UNDOABLE else "")
    return redirect_back(request, reverse("alert", args=[request.project.slug, number]))


def _content(request: ProjectRequest, number: int) -> dict[str, Any]:
    page = read_alert_data(project=request.project, number=number)
    one = page.alert
    silent = one.cause in AlertCause.SILENT
    driving = None if silent else build_driving(page, request.GET.get("metric", ""))
    traffic = driving.data.traffic if driving else CurrentTraffic()
    ranks = None if silent else alert_ranks(one, page.verdicts)
    is_open = one.state != AlertState.RESOLVED
    return {
        "project": request.project,
        "page": page,
        "alert": one,
        "is_open": is_open,
        "tone": TONES.get(one.severity, "") if is_open else "",
        "silent": silent,
        "fleet_silent": one.cause == AlertCause.FLEET_SILENCE,
        "answer": build_alert_answer(page, traffic, ranks),
        "driving": driving,
        "silence": draw_silence_chart(one) if silent else None,
        "evidence": build_evidence(page, ranks=ranks is not None and bool(ranks.columns)),
        "ranks": ranks,
        "runbook": build_runbook(page, traffic, ranks),
        "moments": timeline.build_timeline(page),
        "delays": timeline.build_delays(page),
        "sent": timeline.list_sent_messages(page),
        "baseline": timeline.baseline_name(page),
        "compare_query": timeline.compare_query(page),
        "onset": timeline.find_onset(page),
        "links": build_page_links(page, ranks),
        "acknowledged_by": next(
            (event.actor_name for event in page.events if event.kind == EventKind.ACKNOWLEDGED), ""
        ),
        "snoozes": list(SNOOZE_HOURS.items())[1:],
    }


def _acknowledge(one: Alert, request: ProjectRequest, note: str) -> str:
    alert_acknowledge(alert=one, user=request.user, note=note, address=address_of(request))
    return "Acknowledged. Assigned to you."


def _snooze(one: Alert, request: ProjectRequest, note: str) -> str:
    hours = request.POST.get("hours", "1")
    alert_snooze(
        alert=one,
        user=request.user,
        until=read_snooze_end(hours),
        note=note,
        address=address_of(request),
    )
    return f"Snoozed for {SNOOZE_HOURS[hours]}; reopens earlier if it worsens."


def _resolve(one: Alert, request: ProjectRequest, note: str) -> str:
    alert_resolve(alert=one, user=request.user, note=note, address=address_of(request))
    return "Resolved."


def _dismiss(one: Alert, request: ProjectRequest, note: str) -> str:
    alert_dismiss(alert=one, user=request.user, note=note, address=address_of(request))
    return "Marked as false positive. You will be alerted again only if it gets worse."


def _note(one: Alert, request: ProjectRequest, note: str) -> str:
    alert_note(alert=one, user=request.user, note=note, address=address_of(request))
    return "Note added."


def _undo(one: Alert, request: ProjectRequest, note: str) -> str:
    alert_undo(alert=one, user=request.user, address=address_of(request))
    return "Undone."


def read_snooze_end(hours: str) -> Any:
    """The end of a snooze of one of the offered durations."""
    if hours not in SNOOZE_HOURS:
        raise AlertActionError("until", "choose one of the listed durations.")
    return clock.now() + timedelta(hours=int(hours))


def address_of(request: ProjectRequest) -> str | None:
    """The address of the caller, for the audit log."""
    return request.META.get("REMOTE_ADDR")


ACTIONS: dict[str, Callable[[Alert, ProjectRequest, str], str]] = {
    "acknowledge": _acknowledge,
    "snooze": _snooze,
    "resolve": _resolve,
    "dismiss": _dismiss,
    "note": _note,
    "undo": _undo,
}
UNDOABLE = ("acknowledge", "snooze", "resolve", "dismiss")
