"""Versions: a model and its deployments, in order of deployment."""

from __future__ import annotations

from django.db.models import Q

from dashboard.fleet.models import Deployment, WatchedModel

MAX_DEPLOYMENTS = 60


def find_model(*, project_id: int, model_id: int) -> WatchedModel | None:
    """Return the model; None if the project does not have it."""
    return (
        WatchedModel.objects.filter(project_id=project_id, pk=model_id)
        .select_related("project")
        .first()
    )


def list_model_deployments(
    *, project_id: int, model_id: int, always: tuple[int, ...] = ()
) -> list[Deployment]:
    """Return the newest deployments of all environments with their versions, newest first.

    Versions in `always` are included regardless of age.
    """
    rows = (
        Deployment.objects.filter(project_id=project_id, model_id=model_id)
        .select_related("version")
        .order_by("-started_minute", "-pk")
    )
    newest = list(rows[:MAX_DEPLOYMENTS])
    missing = set(always) - {deployment.version_id for deployment in newest}
    return newest + (list(rows.filter(Q(version_id__in=missing))) if missing else [])
