"""Selectors of regressions: verdicts and baseline choices."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet

from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.models import BaselineChoice, Verdict


def read_latest_verdicts(*, project: Project) -> QuerySet[Verdict]:
    """The current verdict of each deployment of a project."""
    rows = Verdict.objects.filter(project=project, current=True)
    return rows.select_related("deployment__version", "deployment__model", "baseline__version")


def list_verdict_changes(*, project: Project, limit: int = 20) -> QuerySet[Verdict]:
    """Rows whose verdict differs from the previous one, newest first."""
    rows = Verdict.objects.filter(project=project).exclude(previous_kind=F("kind"))
    return rows.select_related("deployment__version", "deployment__model").order_by("-created_at")[
        :limit
    ]


@dataclass(frozen=True)
class BaselineChoices:
    """Operators' choices of baselines in one environment of a model."""

    active: BaselineChoice | None
    accepted: dict[int, BaselineChoice]
    """The newest acceptance of each version, even if it is not the current baseline."""


def list_baseline_choices(*, model: WatchedModel, environment: str) -> QuerySet[BaselineChoice]:
    """Choices of baselines in one environment of a model: the one in force, and all acceptances."""
    rows = BaselineChoice.objects.filter(
        project_id=model.project_id, model=model, environment=environment
    )
    return rows.filter(Q(ended_at=None) | Q(kind="accept"))


def group_baseline_choices(rows: Iterable[BaselineChoice]) -> BaselineChoices:
    """The choice in force, and every acceptance."""
    choices = sorted(rows, key=lambda choice: (choice.chosen_at, choice.pk))
    active = next((choice for choice in choices if choice.ended_at is None), None)
    return BaselineChoices(
        active, {choice.version_id: choice for choice in choices if choice.kind == "accept"}
    )


def find_pair_verdict(a: Deployment, b: Deployment) -> tuple[Verdict | None, bool]:
    """The newest verdict on this pair. `True` means that the judge compared the pair with swapped
    sides."""
    pairs = ((a.version_id, b.version_id), (b.version_id, a.version_id))
    rows = Verdict.objects.filter(
        project_id=a.project_id,
        deployment__environment=a.environment,
        deployment__version_id__in=pairs[0],
        baseline__version_id__in=pairs[0],
    )
    newest = list(
        rows.select_related("deployment", "baseline")
        .order_by("-current", "-created_at")
        .defer("evidence")[:20]
    )
    found = next(
        (
            row
            for row in newest
            if row.baseline and (row.baseline.version_id, row.deployment.version_id) == pairs[0]
        ),
        None,
    )
    turned = any(
        row.baseline and (row.baseline.version_id, row.deployment.version_id) == pairs[1]
        for row in newest
    )
    return found, found is None and turned
