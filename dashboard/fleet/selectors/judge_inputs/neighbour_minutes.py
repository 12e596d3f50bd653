"""Neighbour minutes: calls of other models on the nodes of a deployment and its baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from django.db.models import Q

from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import Deployment, Instance, RegionMinute
from dashboard.fleet.selectors.instances.role_filters import where_counted
from dashboard.projects.selectors import for_project

MAX_NEIGHBOURS = 64
"""Processes of other models that are read for one deployment."""


class StoredNeighbourMinute(NamedTuple):
    """One series of another model on a node in one minute."""

    minute: int
    node: str
    series: tuple[int, int]
    calls: int
    p50: float


def list_neighbours(*, deployment: Deployment, nodes: Collection[str]) -> dict[int, str]:
    """Return the processes of other models that ran on these nodes before the deployment and still
    ran then, with their nodes; one query."""
    known = sorted(set(nodes) - {""})
    rows = Instance.objects.filter(
        where_counted(),
        Q(node__in=known) | Q(node="", host__in=known),
        project_id=deployment.project_id,
        first_minute__lt=deployment.started_minute,
        last_minute__gte=deployment.started_minute,
    )
    rows = rows.exclude(version__model_id=deployment.model_id).exclude(
        instance_id__startswith=OTHER_INSTANCE_PREFIX
    )
    values = rows.order_by("-first_minute", "id").values_list("id", "node", "host")
    return {id: node or host for id, node, host in values[:MAX_NEIGHBOURS]}


def read_neighbour_minutes(
    *, project_id: int, neighbours: Mapping[int, str], from_minute: int, to_minute: int
) -> list[StoredNeighbourMinute]:
    """Return the minutes of these processes, `to_minute` exclusive, in order; one query."""
    if not neighbours or from_minute >= to_minute:
        return []
    rows = for_project(RegionMinute, project_id).filter(
        day__gte=from_minute // 1440,
        day__lte=(to_minute - 1) // 1440,
        instance_id__in=list(neighbours),
        minute__gte=from_minute,
        minute__lt=to_minute,
        p50__gt=0.0,
        calls__gt=0,
    )
    values = rows.order_by("minute", "instance_id", "series_id").values_list(
        "minute", "instance_id", "series_id", "calls", "p50"
    )
    return [
        StoredNeighbourMinute(minute, neighbours[id], (id, series), calls, p50)
        for minute, id, series, calls, p50 in values
        if p50 is not None
    ]
