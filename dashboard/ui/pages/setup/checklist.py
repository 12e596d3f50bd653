"""Checklist of a new project: six steps from the first key to the first verdict."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, Max, OuterRef
from django.urls import reverse

from dashboard.alerts.models import Channel, RollbackGuide
from dashboard.common import clock
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project, list_live_keys
from dashboard.regressions.judge.settings import PRODUCTION
from dashboard.regressions.models import Verdict
from dashboard.vocabulary import numbers

FIRST_ALARM_MINUTES = PRODUCTION.warm_up_minutes + PRODUCTION.instance_minutes
FIRST_HEALTHY_MINUTES = PRODUCTION.warm_up_minutes + PRODUCTION.looks[0]
"""Minutes with calls of both versions before the first possible verdict of each kind."""


@dataclass(frozen=True)
class Step:
    """One step: its state, its missing part, and the page that completes it; only admins can
    complete a step `for_admins`."""

    title: str
    done: bool
    detail: str
    url: str
    action: str
    for_admins: bool = False
    earliest_at: datetime | None = None


@dataclass(frozen=True)
class Checklist:
    """The steps in their order."""

    steps: list[Step]

    @property
    def done_count(self) -> int:
        """Number of finished steps."""
        return sum(step.done for step in self.steps)

    @property
    def complete(self) -> bool:
        """True if every step is finished."""
        return self.done_count == len(self.steps)


@dataclass(frozen=True)
class _Versions:
    """Versions in the environment with the most of them."""

    count: int
    newest_minute: int | None


def read_checklist(*, project: Project) -> Checklist:
    """The state of each step, in three queries."""
    setup, fleet = (reverse(name, args=[project.slug]) for name in ("setup", "fleet"))
    versions = _count_versions(project)
    has_channel, has_runbook, has_verdict = Project.objects.values_list(
        Exists(Channel.objects.filter(project=OuterRef("pk"), enabled=True)),
        Exists(RollbackGuide.objects.filter(project=OuterRef("pk"))),
        Exists(Verdict.objects.filter(project=OuterRef("pk"))),
    ).get(pk=project.pk)
    return Checklist(
        [
            _key(project, setup),
            Step(
                "First report",
                versions.count > 0,
                "Reports arrive." if versions.count else "Import compilewatch in a job.",
                f"{setup}#s2",
                "Instrument a job",
            ),
            _channel(has_channel, project),
            _runbook(has_runbook, project),
            Step(
                "Second version",
                versions.count > 1,
                "A version has a baseline."
                if versions.count > 1
                else "A verdict compares two versions of a model in one environment.",
                f"{setup}#s2",
                "Set the version",
            ),
            _first_verdict(versions, has_verdict, fleet),
        ]
    )


def _key(project: Project, setup: str) -> Step:
    keys = list_live_keys(project).filter(kind="ing")
    found = keys.aggregate(count=Count("pk"), used_at=Max("last_used_at"))
    if found["used_at"]:
        detail = "The key works."
    elif found["count"]:
        detail = "No job has used a key yet."
    else:
        detail = "A job needs an API key to send reports."
    return Step("API key", found["used_at"] is not None, detail, f"{setup}#s1", "Create key", True)


def _channel(exists: bool, project: Project) -> Step:
    detail = "Alerts are sent." if exists else "Without a channel, alerts notify no one."
    url = reverse("rules", args=[project.slug]) + "#channels"
    return Step("Notification channel", exists, detail, url, "Add channel", for_admins=True)


def _runbook(exists: bool, project: Project) -> Step:
    detail = "Alerts show it." if exists else "Rollback steps, shown on each alert."
    url = reverse("guides", args=[project.slug])
    return Step("Runbook", exists, detail, url, "Write runbook", for_admins=True)


def _count_versions(project: Project) -> _Versions:
    rows = (
        for_project(Deployment, project)
        .exclude(version__name=OTHER)
        .values("model_id", "environment")
        .annotate(count=Count("version_id", distinct=True), newest=Max("started_minute"))
        .order_by("-count", "newest")
    )
    row = rows.first()
    return _Versions(row["count"], row["newest"]) if row else _Versions(0, None)


def _first_verdict(versions: _Versions, judged: bool, fleet: str) -> Step:
    alarm, healthy = (
        numbers.format_minutes(minutes) for minutes in (FIRST_ALARM_MINUTES, FIRST_HEALTHY_MINUTES)
    )
    needs = f"Needs calls of both versions: {alarm} for WATCH or ROLL BACK, {healthy} for HEALTHY."
    earliest_at = None
    if not judged and versions.count > 1 and versions.newest_minute is not None:
        earliest_at = clock.at_minute(versions.newest_minute + FIRST_ALARM_MINUTES)
    return Step(
        "First verdict",
        judged,
        "Versions are evaluated each minute." if judged else needs,
        fleet,
        "View the fleet",
        earliest_at=earliest_at,
    )
