"""Deployment marks: deployments posted by CI, stored and listed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from dashboard.accounts.services import audit_write
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import DeploymentMark
from dashboard.projects.models import Project

MAX_MARKS_PER_HOUR = 200
MAX_SHOWN_MARKS = 50
_DETAIL_FIELDS = ("by", "link", "note")


class TooManyMarks(Exception):
    """Error: a project posted more than MAX_MARKS_PER_HOUR deployments within an hour."""


@dataclass(frozen=True)
class PostedMark:
    """A deployment as CI posts it."""

    model: str
    version: str
    environment: str
    at: datetime
    by: str = ""
    link: str = ""
    note: str = ""


def mark_post(
    *, project_id: int, told: PostedMark, actor_name: str, address: str | None = None
) -> tuple[DeploymentMark, bool]:
    """Store a deployment; return the mark and whether the mark is new.

    A repeated model, version, environment and time updates the details of the existing mark. Raises
    TooManyMarks.
    """
    said = {name: getattr(told, name) for name in _DETAIL_FIELDS}
    known = {
        "project_id": project_id,
        "model_name": told.model,
        "environment": told.environment,
        "version_name": told.version,
        "at": told.at,
    }
    with write_transaction():
        # A concurrent request with the same mark waits for this lock and then finds the mark.
        Project.objects.select_for_update(no_key=True).get(pk=project_id)
        mark = DeploymentMark.objects.filter(**known).first()
        before = {name: getattr(mark, name) for name in _DETAIL_FIELDS} if mark else None
        if mark is not None and before == said:
            return mark, False
        if mark is None:
            _check_mark_rate(project_id)
            mark = DeploymentMark(**known, created_at=clock.now())
        for name, value in said.items():
            setattr(mark, name, value)
        mark.save()
        subject = f"{told.model} {told.version} in {told.environment}"
        after = said | {"at": told.at.isoformat()}
        audit_write(
            action="deployment.post",
            subject=subject,
            project_id=project_id,
            actor_name=actor_name,
            before=before,
            after=after,
            address=address,
        )
    return mark, before is None


def _check_mark_rate(project_id: int) -> None:
    """Raise TooManyMarks if the project has reached its limit of marks per hour."""
    hour = clock.now() - timedelta(hours=1)
    recent = DeploymentMark.objects.filter(project_id=project_id, created_at__gt=hour)
    if recent.count() >= MAX_MARKS_PER_HOUR:
        raise TooManyMarks


def list_marks(
    *, project_id: int, model_name: str, environment: str, first: datetime, last: datetime
) -> list[DeploymentMark]:
    """Return the marks of a model in an environment, oldest first; at most the newest
    MAX_SHOWN_MARKS."""
    return list(
        list_newest_marks(
            project_id=project_id,
            model_name=model_name,
            environment=environment,
            first=first,
            last=last,
        )
    )[::-1]


def list_newest_marks(
    *, project_id: int, model_name: str, environment: str, first: datetime, last: datetime
) -> QuerySet[DeploymentMark]:
    """Return a query of the same marks, newest first."""
    rows = DeploymentMark.objects.filter(
        project_id=project_id,
        model_name=model_name,
        environment=environment,
        at__gte=first,
        at__lte=last,
    )
    return rows.order_by("-at", "-pk")[:MAX_SHOWN_MARKS]
