"""Instances of some versions: how they started, what latched eager, and how they are configured."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from dashboard.fleet.models import Instance

LATEST = 400
Configuration = tuple[int, dict[str, Any], dict[str, Any]]
"""Version id, identity and components of one instance."""


@dataclass(frozen=True)
class InstanceFacts:
    """One instance as the pages need it."""

    id: int
    instance_id: str
    version_id: int
    host: str
    gpu: str
    rank: int
    state_minute: int
    started_minute: float
    cold_start: float | None
    latched_eager: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """How people call it."""
        return f"{self.host} / {self.rank}" if self.host else self.instance_id


def version_instances(*, project_id: int, version_ids: Collection[int], environment: str) -> list[InstanceFacts]:
    """The instances of some versions seen last, with their cold start."""
    rows = Instance.objects.filter(project_id=project_id, version_id__in=version_ids, environment=environment)
    wanted = rows.select_related("cold_start").defer("identity", "capabilities", "components").order_by("-last_minute", "pk")
    return [_facts(row) for row in wanted[:LATEST]]


def version_configurations(*, project_id: int, version_ids: Collection[int], environment: str) -> list[Configuration]:
    """Version, identity and components of the instances seen last."""
    rows = Instance.objects.filter(project_id=project_id, version_id__in=version_ids, environment=environment).order_by(
        "-last_minute", "pk"
    )
    return list(rows.values_list("version_id", "identity", "components")[:LATEST])


def _facts(row: Instance) -> InstanceFacts:
    start = getattr(row, "cold_start", None)
    latched = [frame for frame in row.latched_eager if isinstance(frame, dict)] if isinstance(row.latched_eager, list) else []
    return InstanceFacts(
        row.pk,
        row.instance_id,
        row.version_id,
        row.host,
        row.gpu,
        row.rank,
        row.last_minute,
        row.started_at.timestamp() / 60,
        start.total if start else None,
        latched,
    )
