"""The Alerts list, the Alert page, and its actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    alert_resolve,
    alert_snooze,
)
from dashboard.common import clock
from dashboard.projects.models import Role
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.paging import paginate
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.http.return_address import redirect_back
from dashboard.ui.http.sortable_table import Column, Order
from dashboard.ui.http.time_range import replace_query
from dashboard.ui.pages.alerts import timeline
from dashboard.ui.pages.alerts.affected_ranks import alert_ranks
from dashboard.ui.pages.alerts.group_queries import AlertFilter
from dashboard.ui.pages.alerts.queries import (
    DEFAULT_ORDER,
    alert_or_404,
    count_alerts,
    count_alerts_by_state,
    list_alerts,
    read_alert_data,
)

COLUMNS = (
    Column("Alert", "number", most_first=True),
    Column("State", "state"),
    Column("Worst verdict", "worst"),
    Column("Model and version", "model"),
    Column("Opened", "opened", right=True, most_first=True),
    Column("Ended", "ended", right=True, most_first=True),
)
SORT_FIELDS: dict[str, str | Sequence[str]] = {
    "number": "number",
    "state": DEFAULT_ORDER,
    "worst": ("urgency", "-opened_at", "-pk"),
    "model": ("model_name", "deployment__version__name", "-opened_at", "-pk"),
    "opened": ("opened_at", "pk"),
    "ended": ("resolved_at", "pk"),
}
PAGE_SIZE = 50
SNOOZE_HOURS = {"1": "1\u00a0hour", "4": "4\u00a0hours", "24": "1\u00a0day", "168": "7\u00a0days"}


@require_safe
@project_page()
def alerts(request: ProjectRequest) -> HttpResponse:
    """All alerts of the project, open ones first."""
    open_only = request.GET.get("state") == "open"
    narrowed = AlertFilter.read(request.GET)
    order = Order.read(request.GET, COLUMNS, "state")
    counts = count_alerts_by_state(project=request.project)
    total = counts["waiting" if open_only else "total"]
    if narrowed:
        total = count_alerts(project=request.project, open_only=open_only, narrowed=narrowed)
    page = paginate(request.GET, total=total, size=PAGE_SIZE)
    rows = list_alerts(
        project=request.project,
        open_only=open_only,
        order=order.by(SORT_FIELDS),
        narrowed=narrowed,
        first=page.first,
        most=PAGE_SIZE,
    )
    context = {
        "project": request.project,
        "alerts": rows,
        "page": page,
        "narrowed": narrowed,
        "counts": counts,
        "open_only": open_only,
        "heads": order.heads(request.GET, COLUMNS),
        "usual": order == Order("state", descending=False),
        "states": [
            (words, replace_query(request.GET, state=state, page=""), open_only == bool(state))
            for words, state in (("All", ""), ("Unresolved", "open"))
        ],
    }
    part = render_to_string("ui/alerts/rows.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    return mark_uncached(
        render(
            request, "ui/alerts/list.html", context | {"part": part, "etag": fragment_etag(part)}
        )
    )


@require_safe
@project_page()
def alert(request: ProjectRequest, number: int) -> HttpResponse:
    """One alert: timeline, notifications and next steps."""
    context = _content(request, number)
    part = render_to_string("ui/alerts/live.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    return mark_uncached(
        render(
            request,
            "ui/alerts/page.html",
            context | {"part": part, "etag": fragment_etag(part), "snoozes": SNOOZE_HOURS},
        )
    )


@require_POST
@project_page(Role.OPERATOR)
def alert_act(request: ProjectRequest, number: int, action: str) -> HttpResponse:
    """Acknowledges, snoozes, resolves or dismisses an alert, and shows the result on the page."""
    act = _ACTIONS.get(action)
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
        messages.success(request, said)
    return redirect_back(request, reverse("alert", args=[request.project.slug, number]))


def _content(request: ProjectRequest, number: int) -> dict[str, Any]:
    page = read_alert_data(project=request.project, number=number)
    one = page.alert
    moments = timeline.build_timeline(page)
    rolled_back = timeline.find_rollback_time(page)
    worst_at = next(
        (
            event.at
            for event in reversed(page.events)
            if event.verdict and event.verdict.kind == one.worst
        ),
        None,
    )
    return {
        "project": request.project,
        "page": page,
        "alert": one,
        "is_open": one.state != AlertState.RESOLVED,
        "moments": moments,
        "newest": next((one for one in moments if one.evidence), None),
        "sent": timeline.list_sent_messages(page),
        "recovery": timeline.build_recovery_chart(page),
        "title_at": page.title_at,
        "baseline": timeline.baseline_name(page),
        "cause": timeline.find_cause(page),
        "where": timeline.list_affected_hosts(page),
        "silent": one.cause in AlertCause.SILENT,
        "fleet_silent": one.cause == AlertCause.FLEET_SILENCE,
        "ranks": alert_ranks(one, timeline.list_alert_verdicts(page)),
        "compare_query": timeline.compare_query(page),
        "seen_after": timeline.format_delay(one, one.opened_at),
        "worst_after": timeline.format_delay(one, worst_at),
        "acknowledged_after": timeline.format_delay(one, one.acknowledged_at),
        "acknowledged_by": next(
            (event.actor_name for event in page.events if event.kind == EventKind.ACKNOWLEDGED), ""
        ),
        "rolled_back": rolled_back,
        "level": timeline.find_recovery_kind(page),
        "ended_after": timeline.format_delay(one, rolled_back or one.resolved_at),
        "guide_text": timeline.fill_runbook_text(page.guide.text, page) if page.guide else "",
        "guide_url": timeline.fill_runbook_url(page),
    }


def _acknowledge(one: Alert, request: ProjectRequest, note: str) -> str:
    alert_acknowledge(alert=one, user=request.user, note=note, address=_address(request))
    return "Acknowledged. Assigned to you."


def _snooze(one: Alert, request: ProjectRequest, note: str) -> str:
    hours = request.POST.get("hours", "")
    if hours not in SNOOZE_HOURS:
        raise AlertActionError("until", "choose one of the listed durations.")
    alert_snooze(
        alert=one,
        user=request.user,
        until=clock.now() + timedelta(hours=int(hours)),
        note=note,
        address=_address(request),
    )
    return f"Snoozed for {SNOOZE_HOURS[hours]}; reopens earlier if it worsens."


def _resolve(one: Alert, request: ProjectRequest, note: str) -> str:
    alert_resolve(alert=one, user=request.user, note=note, address=_address(request))
    return "Resolved."


def _dismiss(one: Alert, request: ProjectRequest, note: str) -> str:
    alert_dismiss(alert=one, user=request.user, note=note, address=_address(request))
    return "Marked as false positive. You will be alerted again only if it gets worse."


def _address(request: ProjectRequest) -> str | None:
    return request.META.get("REMOTE_ADDR")


_ACTIONS: dict[str, Callable[[Alert, ProjectRequest, str], str]] = {
    "acknowledge": _acknowledge,
    "snooze": _snooze,
    "resolve": _resolve,
    "dismiss": _dismiss,
}
