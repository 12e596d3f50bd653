"""Instance list: the instances of a model that reported since a time, for filters, sorting and
paging."""

from __future__ import annotations

from datetime import datetime

from django.db.models import OuterRef, Subquery

from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import Instance
from dashboard.ingest.models import Sender

MAX_INSTANCES = 10_000


def list_instances_since(
    *, project_id: int, model_id: int, environment: str, since: datetime
) -> list[Instance]:
    """Return the instances with their versions, the newest first; one query.

    Collective instances `other` are excluded.
    """
    rows = Instance.objects.filter(
        project_id=project_id, model_id=model_id, environment=environment, last_seen_at__gte=since
    )
    rows = (
        rows.exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
        .select_related("version")
        .defer("identity", "components")
    )
    return list(rows.order_by("-last_seen_at", "pk")[:MAX_INSTANCES])


def find_instance(*, project_id: int, model_id: int, instance_id: str) -> Instance | None:
    """Return an instance of a model, with the number of its lost windows as `missing`; None if it
    does not exist."""
    rows = Instance.objects.filter(
        project_id=project_id, model_id=model_id, instance_id=instance_id
    )
    mine = Sender.objects.filter(project_id=project_id, instance_id=OuterRef("instance_id"))
    rows = rows.annotate(missing=Subquery(mine.values("missing")[:1]))
    return rows.select_related("model", "version", "cold_start").first()
