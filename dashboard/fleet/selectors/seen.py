"""Instances that reported lately, with what their states rest on and no more: a fleet has a thousand of them on every page."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from django.db.models import TextField
from django.db.models.functions import Cast

from dashboard.common import clock
from dashboard.common.plain_rows import rows_plain
from dashboard.fleet.fold.keys import OTHER_INSTANCE
from dashboard.fleet.models import Instance

GONE_AFTER = 30 * 60


class Seen(NamedTuple):
    """The columns of an instance under their own names, and its cold start in seconds."""

    pk: int
    model_id: int
    version_id: int
    environment: str
    host: str
    torch: str
    started_at: datetime
    last_seen_at: datetime
    ready_at: datetime | None
    compiling_for: float
    compiling_frame: str
    compiling_usual: float | None
    known_calls: int
    eager_calls: int
    cold_start: float | None
    capabilities: dict[str, Any]
    latched_eager: list[Any]


_PLAIN = [name for name in Seen._fields if name not in ("cold_start", "capabilities", "latched_eager")]


def instances_seen(*, project_id: int, environment: str = "") -> list[Seen]:
    """Those of a project, or of one environment of it, that reported within the last half hour."""
    since = clock.now() - timedelta(seconds=GONE_AFTER)
    rows = Instance.objects.filter(project_id=project_id, last_seen_at__gte=since).exclude(instance_id__startswith=OTHER_INSTANCE)
    if environment:
        rows = rows.filter(environment=environment)
    # As texts: of the many only a few differ, and each of those is taken apart once.
    said = rows.annotate(can=Cast("capabilities", TextField()), latched=Cast("latched_eager", TextField()))
    read = cache(json.loads)
    columns = rows_plain(said.values_list(*_PLAIN, "cold_start__total", "can", "latched"))
    return [Seen._make((*row, read(can), read(latched))) for *row, can, latched in columns]
