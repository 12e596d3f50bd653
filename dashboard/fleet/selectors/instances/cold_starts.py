"""Cold starts: the starts of a version, its baseline, and the newest other processes of the
model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Case, IntegerField, Q, Value, When

from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import Instance
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.instances.instance_states import has_ended
from dashboard.fleet.selectors.instances.instances import ColdStartData, make_cold_start
from dashboard.fleet.selectors.instances.role_filters import where_counted

MAX_STARTS, MOST_OTHERS = 400, 120


@dataclass(frozen=True)
class ProcessStart:
    """One process with its resources and configuration.

    `gpus` is the number of GPUs it holds while it compiles. `start` is None until the start is
    known.
    """

    id: int
    name: str
    host: str
    version_id: int
    version: str
    environment: str
    gpu: str
    rank: int
    gpus: int
    started_at: datetime
    last_minute: int
    ended: bool
    start: ColdStartData | None
    components: dict[str, str] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=dict)
    latched: tuple[dict[str, Any], ...] = ()


def read_process_starts(
    *, project_id: int, model_id: int, environment: str, version_ids: Collection[int]
) -> list[ProcessStart]:
    """Return the counted processes of these versions in an environment, newest first, in one query.

    The newest other processes of the model follow, in any environment.
    """
    wanted = Q(version_id__in=version_ids, environment=environment)
    rows = Instance.objects.filter(
        where_counted(), project_id=project_id, model_id=model_id
    ).exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
    rows = rows.annotate(
        apart=Case(When(wanted, then=Value(0)), default=Value(1), output_field=IntegerField())
    )
    read = rows.select_related("cold_start", "version").order_by("apart", "-started_at", "-pk")
    found = list(read[:MAX_STARTS])
    chosen = [row for row in found if not row.apart] + [row for row in found if row.apart][
        :MOST_OTHERS
    ]
    return sorted(
        (_make_start(row) for row in chosen), key=lambda one: (one.started_at, one.id), reverse=True
    )


def count_gpus(gpu: str, world_size: int, identity: Any) -> int:
    """Return the number of GPUs that a process holds: one for a rank, else all visible GPUs."""
    count = identity.get("gpu_count") if isinstance(identity, dict) else None
    if not gpu:
        return 0
    return (
        count
        if world_size <= 1
        and isinstance(count, int)
        and not isinstance(count, bool)
        and 1 <= count <= 64
        else 1
    )


def _make_start(row: Instance) -> ProcessStart:
    start = getattr(row, "cold_start", None)
    latched = row.latched_eager if isinstance(row.latched_eager, list) else []
    return ProcessStart(
        id=row.pk,
        name=process_name(row),
        host=row.host,
        version_id=row.version_id,
        version=row.version.name,
        environment=row.environment,
        gpu=row.gpu,
        rank=row.rank,
        gpus=count_gpus(row.gpu, row.world_size, row.identity),
        started_at=row.started_at,
        last_minute=row.last_minute,
        ended=has_ended(row),
        start=make_cold_start(start) if start else None,
        components={str(name): str(value) for name, value in row.components.items()}
        if isinstance(row.components, dict)
        else {},
        capabilities=row.capabilities if isinstance(row.capabilities, dict) else {},
        latched=tuple(frame for frame in latched if isinstance(frame, dict)),
    )
