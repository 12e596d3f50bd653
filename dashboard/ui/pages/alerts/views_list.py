"""The Alerts list, and actions on many alerts at once."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.alerts.models import Alert
from dashboard.alerts.services import AlertActionError
from dashboard.projects.models import Role
from dashboard.projects.selectors import for_project
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.paging import paginate
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.http.sortable_table import Column, Order
from dashboard.ui.pages.alerts.filters import ALL, DAYS, ME, STATES, VERDICTS, AlertFilter
from dashboard.ui.pages.alerts.groups import group_alerts
from dashboard.ui.pages.alerts.list_queries import (
    DEFAULT_ORDER,
    FilterChoices,
    count_alerts,
    list_alerts,
    list_filter_choices,
)
from dashboard.ui.pages.alerts.views import ACTIONS, UNDOABLE
from dashboard.vocabulary import numbers

COLUMNS = (
    Column("Alert", "number", most_first=True),
    Column("Worst verdict", "worst"),
    Column("Model", "model"),
    Column("Impact"),
    Column("State", "state"),
    Column("Owner"),
    Column("Opened", "opened", right=True, most_first=True),
)
ENDED = Column("Ended", "ended", right=True, most_first=True)
SORT_FIELDS: dict[str, Any] = {
    "number": "number",
    "state": DEFAULT_ORDER,
    "worst": ("urgency", "-opened_at", "-pk"),
    "model": ("model_name", "deployment__version__name", "-opened_at", "-pk"),
    "opened": ("opened_at", "pk"),
    "ended": ("resolved_at", "pk"),
}
PAGE_SIZE = 50
MAX_ACTED = 200
MAX_ERRORS = 3
DONE = {
    "acknowledge": "acknowledged",
    "snooze": "snoozed for 1\u00a0hour",
    "resolve": "resolved",
    "dismiss": "marked as false positive",
    "undo": "restored",
}


@require_safe
@project_page()
def alerts(request: ProjectRequest) -> HttpResponse:
    """Alerts of the project; without a filter those that are not resolved."""
    context = _content(request)
    part = render_to_string("ui/alerts/rows.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    choices = list_filter_choices(project=request.project)
    return mark_uncached(
        render(
            request,
            "ui/alerts/list.html",
            context
            | {"part": part, "etag": fragment_etag(part)}
            | _filter_context(request, context["wanted"], choices, context["counts"]),
        )
    )


@require_POST
@project_page(Role.OPERATOR)
def alerts_act(request: ProjectRequest) -> HttpResponse:
    """One action on many alerts; each is checked and recorded for itself. Returns to the list with
    the number of changed alerts, and the reasons for the others."""
    action, *named = request.POST.get("action", "").split() or [""]
    if undone := request.GET.get("undo"):
        action, named = "undo", undone.split(",")
    if action and action not in DONE:
        raise Http404("Action not found.")
    chosen = {
        int(one)
        for one in [*named, *([] if named else request.POST.getlist("number"))]
        if one.isascii() and one.isdigit() and len(one) < 10
    }
    done, errors = _act(request, action, chosen) if action else ([], [])
    back = _read_back(request)
    if done:
        undo = reverse("alerts_act", args=[request.project.slug])
        undo += f"?{_encode({'undo': ','.join(map(str, done)), 'back': back})}"
        text = f"{numbers.plural(len(done), 'alert')} {DONE[action]}."
        messages.success(request, text, extra_tags=undo if action in UNDOABLE else "")
    if errors:
        more = len(errors) - MAX_ERRORS
        tail = f" {more} more." if more > 0 else ""
        messages.error(request, f"Not changed: {' '.join(errors[:MAX_ERRORS])}{tail}")
    if not done and not errors:
        messages.error(request, "Select at least one alert.")
    return redirect(f"{reverse('alerts', args=[request.project.slug])}{'?' + back if back else ''}")


def _act(request: ProjectRequest, action: str, chosen: set[int]) -> tuple[list[int], list[str]]:
    """Numbers of the changed alerts, and a sentence for each other one."""
    rows = for_project(Alert, request.project).filter(number__in=sorted(chosen)[:MAX_ACTED])
    found = {one.number: one for one in rows.defer("ran_on").order_by("number")}
    done, errors = [], [f"A-{one} was not found." for one in sorted(chosen - set(found))]
    for number, alert in found.items():
        alert.project = request.project
        try:
            ACTIONS[action](alert, request, "")
            done.append(number)
        except AlertActionError as error:
            errors.append(error.sentence)
    return done, errors


def _read_back(request: ProjectRequest) -> str:
    """The query of the list that the reader came from."""
    return QueryDict(request.POST.get("back", "") or request.GET.get("back", "")).urlencode()


def _encode(values: dict[str, str]) -> str:
    query = QueryDict(mutable=True)
    query.update({name: value for name, value in values.items() if value})
    return query.urlencode()


def _content(request: ProjectRequest) -> dict[str, Any]:
    wanted = AlertFilter.read(request.GET)
    ended = wanted.state in (ALL, "resolved")
    columns = (*COLUMNS, ENDED) if ended else COLUMNS
    order = Order.read(request.GET, (*COLUMNS, ENDED), "state")
    counts = count_alerts(project=request.project, user=request.user, wanted=wanted)
    page = paginate(request.GET, total=counts["found"], size=PAGE_SIZE)
    rows = list_alerts(
        project=request.project,
        user=request.user,
        wanted=wanted,
        order=order.by(SORT_FIELDS),
        first=page.first,
        most=PAGE_SIZE,
    )
    return {
        "project": request.project,
        "rows": group_alerts(rows, grouped=request.GET.get("by") != "none"),
        "first": rows[0] if rows else None,
        "page": page,
        "wanted": wanted,
        "ended": ended,
        "span": len(columns) + 1,
        "counts": counts,
        "heads": order.heads(request.GET, columns),
        "usual": order == Order("state", descending=False),
    }


def _filter_context(
    request: ProjectRequest, wanted: AlertFilter, choices: FilterChoices, counts: dict[str, int]
) -> dict[str, Any]:
    model = dict(choices.models).get(wanted.model or 0, "not found" if wanted.model else "")
    views = (
        ("Open", "", counts["waiting"]),
        ("Mine", f"owner={ME}", counts["mine"]),
        ("ROLL BACK", "verdict=roll_back", counts["roll_back"]),
        ("Resolved, 7d", "state=resolved&days=7", None),
        ("All", "state=all", counts["total"]),
    )
    here = {name: value for name, value in request.GET.items() if value and name != "page"}
    return {
        "choices": choices,
        "states": STATES,
        "verdicts": VERDICTS,
        "days": DAYS,
        "by": "none" if request.GET.get("by") == "none" else "",
        "sort": request.GET.get("sort", ""),
        "query": request.GET.urlencode(),
        "chips": wanted.list_chips(request.GET, model),
        "views": [
            (name, f"?{query}", count, QueryDict(query).dict() == here)
            for name, query, count in views
        ],
    }
