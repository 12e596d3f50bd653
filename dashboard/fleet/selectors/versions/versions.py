"""A model, its deployments and its versions, in order of deployment."""

from __future__ import annotations

from django.db.models import Q

from dashboard.fleet.models import Deployment, WatchedModel

MAX_DEPLOYMENTS = 60


def find_model(*, project_id: int, model_id: int) -> WatchedModel | None:
    """The model, None when it is not of this project."""
    return (
        WatchedModel.objects.filter(project_id=project_id, pk=model_id)
        .select_related("project")
        .first()
    )


def list_model_deployments(
    *, project_id: int, model_id: int, always: tuple[int, ...] = ()
) -> list[Deployment]:
    """The newest deployments in every environment, newest first, with their versions; those of
    `always` come along however old."""
    rows = (
        Deployment.objects.filter(project_id=project_id, model_id=model_id)
        .select_related("version")
        .order_by("-started_minute", "-pk")
    )
    newest = list(rows[:MAX_DEPLOYMENTS])
    missing = set(always) - {deployment.version_id for deployment in newest}
    return newest + (list(rows.filter(Q(version_id__in=missing))) if missing else [])
