"""Alerts for the list: rows of a page, counts by state, and the values of the filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Case, Count, F, Q, QuerySet, When
from django.db.models.functions import Lower

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project
from dashboard.ui.pages.alerts.filters import AlertFilter
from dashboard.ui.pages.alerts.related import attach_other_environments
from dashboard.vocabulary.severity import ALERTING_VERDICTS

MAX_ALERTS_LISTED = 200
"""The maximum for a file."""
MAX_CHOICES = 200
DEFAULT_ORDER = ("waiting", "taken", "-opened_at", "-pk")
"""Open alerts first, ROLL BACK before the others, unassigned before assigned alerts, then the
newest."""


@dataclass(frozen=True)
class FilterChoices:
    """Values of the filters that alerts have: models, environments and owners."""

    models: list[tuple[int, str]]
    environments: list[str]
    owners: list[str]


def list_alerts(
    *,
    project: Project,
    user: User,
    wanted: AlertFilter,
    order: Sequence[str] = DEFAULT_ORDER,
    first: int = 0,
    most: int = MAX_ALERTS_LISTED,
) -> list[Alert]:
    """Alerts from an offset of a sort order, with their related alerts; two queries. `reason` is
    the cause of the verdict, and `instances` the number of instances that it evaluated."""
    rows = (
        wanted.filter(for_project(Alert, project), user)
        .select_related("deployment__version", "deployment__model", "owner", "group")
        .defer("ran_on")
        .annotate(
            reason=F("verdict__cause"),
            instances=F("verdict__evidence__evidence__0__candidate_instances"),
            **_urgency(),
        )
    )
    # An alert that has not ended has no end and comes last in both directions.
    by_field = [
        F(one.removeprefix("-")).desc(nulls_last=True)
        if one.startswith("-")
        else F(one).asc(nulls_last=True)
        for one in order
    ]
    found = list(rows.order_by(*by_field)[first : first + most])
    attach_other_environments(project=project, alerts=found)
    return found


def _urgency() -> dict[str, Case | Lower]:
    urgency = Case(
        *(When(worst=kind, then=place) for place, kind in enumerate(ALERTING_VERDICTS)),
        default=len(ALERTING_VERDICTS),
    )
    return {
        "waiting": Case(When(state=AlertState.RESOLVED, then=3), default=urgency),
        "taken": Case(When(state=AlertState.OPEN, then=0), default=1),
        "urgency": urgency,
        "model_name": Lower("deployment__model__name"),
    }


def count_alerts(*, project: Project, user: User, wanted: AlertFilter) -> dict[str, int]:
    """Counts in one query: all alerts, each state, and for the saved views `mine` and `roll_back`
    of the unresolved alerts; `found` are the alerts of the filter."""
    rows = for_project(Alert, project)
    unresolved = ~Q(state=AlertState.RESOLVED)
    matching = wanted.filter(rows, user).order_by().values("pk")
    counts = rows.aggregate(
        total=Count("pk"),
        found=Count("pk", filter=Q(pk__in=matching)),
        mine=Count("pk", filter=unresolved & Q(owner=user)),
        roll_back=Count("pk", filter=unresolved & Q(worst="roll_back")),
        **{state.value: Count("pk", filter=Q(state=state)) for state in AlertState},
    )
    return counts | {"waiting": counts["total"] - counts[AlertState.RESOLVED]}


def list_filter_choices(*, project: Project) -> FilterChoices:
    """The values that the filters offer; one query."""
    rows: QuerySet[Alert, tuple[int, str, str, str | None, str]] = (
        for_project(Alert, project)
        .order_by()
        .values_list(
            "deployment__model_id",
            "deployment__model__name",
            "deployment__environment",
            "owner__username",
            "cause",
        )
        .distinct()
    )
    found = list(rows[: MAX_CHOICES * 10])
    named = [one for one in found if one[4] != AlertCause.FLEET_SILENCE]
    return FilterChoices(
        models=sorted({(id, name) for id, name, *_ in named}, key=lambda one: one[1].lower())[
            :MAX_CHOICES
        ],
        environments=sorted({one[2] for one in named})[:MAX_CHOICES],
        owners=sorted({one[3] for one in found if one[3]})[:MAX_CHOICES],
    )
