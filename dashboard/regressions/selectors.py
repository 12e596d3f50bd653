"""Reads verdicts."""

from dataclasses import dataclass

from django.db.models import F, Q, QuerySet

from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.models import BaselineChoice, Verdict


def verdicts_current(*, project: Project) -> QuerySet[Verdict]:
    """The verdict that stands for each deployment of a project."""
    rows = Verdict.objects.filter(project=project, current=True)
    return rows.select_related("deployment__version", "deployment__model", "baseline__version")


def verdict_changes(*, project: Project, limit: int = 20) -> QuerySet[Verdict]:
    """Rows in which a verdict differs from the one before, newest first."""
    rows = Verdict.objects.filter(project=project).exclude(previous_kind=F("kind"))
    return rows.select_related("deployment__version", "deployment__model").order_by("-created_at")[:limit]


@dataclass(frozen=True)
class Chosen:
    """What operators said about baselines in one environment of a model."""

    active: BaselineChoice | None
    accepted: dict[int, BaselineChoice]
    """The newest acceptance of each version, whether it still names the baseline or not."""


def baseline_chosen(*, model: WatchedModel, environment: str) -> Chosen:
    """The choice in force, and every acceptance."""
    rows = BaselineChoice.objects.filter(project_id=model.project_id, model=model, environment=environment)
    wanted = rows.filter(Q(ended_at=None) | Q(kind="accept")).select_related("version").order_by("chosen_at", "pk")
    choices = list(wanted)
    active = next((choice for choice in choices if choice.ended_at is None), None)
    return Chosen(active, {choice.version_id: choice for choice in choices if choice.kind == "accept"})
