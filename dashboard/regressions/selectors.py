"""Reads verdicts."""

from django.db.models import F, QuerySet

from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict


def verdicts_current(*, project: Project) -> QuerySet[Verdict]:
    """The verdict that stands for each deployment of a project."""
    rows = Verdict.objects.filter(project=project, current=True)
    return rows.select_related("deployment__version", "deployment__model", "baseline__version")


def verdict_changes(*, project: Project, limit: int = 20) -> QuerySet[Verdict]:
    """Rows in which a verdict differs from the one before, newest first."""
    rows = Verdict.objects.filter(project=project).exclude(previous_kind=F("kind"))
    return rows.select_related("deployment__version", "deployment__model").order_by("-created_at")[:limit]
