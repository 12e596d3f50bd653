"""Filters of the Alerts list, from its address: by verdict, state, model, owner, environment, time
and text; the page, the JSON and the CSV use the same filters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.http import QueryDict

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.common import clock
from dashboard.ui.http.time_range import replace_query
from dashboard.vocabulary.severity import ROLL_BACK, WATCH

MAX_ID = 1 << 62
MAX_TEXT_LENGTH = 200
UNRESOLVED, ALL = "unresolved", "all"
STATES = {
    UNRESOLVED: "Not resolved",
    ALL: "All",
    **{str(value): str(label) for value, label in AlertState.choices},
}
VERDICTS = {ROLL_BACK: "ROLL BACK", WATCH: "WATCH"}
DAYS = {"1": "24h", "7": "7d", "30": "30d", "90": "90d"}
ME, NO_ONE = "me", "none"
"""Owners: the person who asks, and none. A person with such a name is found by the text filter."""


@dataclass(frozen=True)
class FilterChip:
    """One filter in force: its text, and the address without it."""

    text: str
    url: str


@dataclass(frozen=True)
class AlertFilter:
    """The filters; an empty value does not filter. `group` and `version` are related alerts."""

    state: str = UNRESOLVED
    verdict: str = ""
    model: int | None = None
    owner: str = ""
    environment: str = ""
    days: str = ""
    text: str = ""
    group: int | None = None
    version: int | None = None

    @classmethod
    def read(cls, query: QueryDict) -> AlertFilter:
        """Invalid values do not filter. Related alerts are shown in every state."""
        group, version = _number(query.get("group", "")), _number(query.get("version", ""))
        usual = ALL if group is not None or version is not None else UNRESOLVED
        state = query.get("state", "")
        return cls(
            state=state if state in STATES else usual,
            verdict=query.get("verdict", "") if query.get("verdict", "") in VERDICTS else "",
            model=_number(query.get("model", "")),
            owner=query.get("owner", "")[:150],
            environment=query.get("env", "")[:64],
            days=query.get("days", "") if query.get("days", "") in DAYS else "",
            text=query.get("q", "").strip()[:MAX_TEXT_LENGTH],
            group=group,
            version=version,
        )

    @property
    def related(self) -> bool:
        """True for the alerts of a group or a version."""
        return self.group is not None or self.version is not None

    @property
    def narrowed(self) -> bool:
        """True if any filter but the state is set."""
        return self != AlertFilter(state=self.state)

    def filter(self, alerts: QuerySet[Alert], user: User) -> QuerySet[Alert]:
        """The alerts that match all filters."""
        return self.filter_state(alerts.filter(self._condition(user)))

    def filter_state(self, alerts: QuerySet[Alert]) -> QuerySet[Alert]:
        """The alerts in the state of the filter."""
        if self.state == UNRESOLVED:
            return alerts.exclude(state=AlertState.RESOLVED)
        return alerts if self.state == ALL else alerts.filter(state=self.state)

    def _condition(self, user: User) -> Q:
        exact = {
            "worst": self.verdict,
            "deployment__model_id": self.model,
            "deployment__environment": self.environment,
            "group_id": self.group,
            "deployment__version_id": self.version,
        }
        wanted = Q(**{name: value for name, value in exact.items() if value not in (None, "")})
        if self.model is not None or self.environment:
            wanted &= ~Q(cause=AlertCause.FLEET_SILENCE)
        if self.days:
            wanted &= Q(opened_at__gte=clock.now() - timedelta(days=int(self.days)))
        if self.owner:
            wanted &= self._owned(user)
        for word in self.text.split():
            wanted &= (
                Q(title__icontains=word)
                | Q(deployment__model__name__icontains=word)
                | Q(owner__username__icontains=word)
                | Q(verdict__cause__icontains=word)
                | Q(number=_number(word.upper().removeprefix("A-")) or -1)
            )
        return wanted

    def _owned(self, user: User) -> Q:
        if self.owner == ME:
            return Q(owner=user)
        return Q(owner=None) if self.owner == NO_ONE else Q(owner__username=self.owner)

    def list_chips(self, query: QueryDict, model: str) -> list[FilterChip]:
        """The filters in force except the state, each with the address without it. `model` is the
        name of the model of the filter."""
        owner = {ME: "me", NO_ONE: "none"}.get(self.owner, self.owner)
        said = (
            ("verdict", VERDICTS.get(self.verdict, ""), "Verdict"),
            ("model", model, "Model"),
            ("owner", owner, "Owner"),
            ("env", self.environment, "Environment"),
            ("days", DAYS.get(self.days, ""), "Opened in"),
            ("q", self.text, "Text"),
        )
        return [
            FilterChip(f"{name}: {value}", replace_query(query, **{key: "", "page": ""}))
            for key, value, name in said
            if value
        ]


def _number(text: str) -> int | None:
    whole = text.isascii() and text.isdigit() and len(text) < 19
    return int(text) if whole and int(text) <= MAX_ID else None
