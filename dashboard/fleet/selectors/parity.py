"""How golden batches came out on the instances of versions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from compilewatch.wire.parity import Parity, parity_of

from dashboard.fleet.models import ParityResult

MOST = 2000


@dataclass(frozen=True)
class ParityRow:
    """One golden batch on one instance."""

    instance: int
    version_id: int
    last_minute: int
    at: datetime
    failed_at: datetime | None
    told: Parity


def version_parities(*, project_id: int, environment: str, version_ids: Collection[int]) -> list[ParityRow]:
    """What instances of these versions told, the newest first; one query."""
    rows = ParityResult.objects.filter(
        project_id=project_id, instance__version_id__in=version_ids, instance__environment=environment
    ).order_by("-at", "-pk")
    read = rows.values_list("instance_id", "instance__version_id", "instance__last_minute", "at", "failed_at", "told", "name")
    return [
        ParityRow(instance, version, minute, at, failed_at, stored(told, name))
        for instance, version, minute, at, failed_at, told, name in read[:MOST]
    ]


def stored(told: Any, name: str) -> Parity:
    """What was kept, under the name that it has in the row."""
    return parity_of({**(told if isinstance(told, dict) else {}), "name": name})
