"""Recent instances: recently reporting instances with only the columns that their states need.

A fleet may have a thousand of them on every page.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet, TextField
from django.db.models.functions import Cast

from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows
from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import Instance
from dashboard.fleet.selectors.instances.role_filters import where_ended, where_helping

GONE_AFTER_S = 30 * 60


class RecentInstance(NamedTuple):
    """Columns of an instance, and its cold start in seconds."""

    pk: int
    model_id: int
    version_id: int
    environment: str
    instance_id: str
    label: str
    host: str
    rank: int
    pid: int | None
    role: str
    active_minute: int | None
    ended_at: datetime | None
    exit_code: int | None
    exit_signal: str
    torch: str
    gpu: str
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


_PLAIN = [
    name
    for name in RecentInstance._fields
    if name not in ("cold_start", "capabilities", "latched_eager")
]


def list_recent_instances(
    *, project_id: int, environment: str = "", since: datetime | None = None
) -> list[RecentInstance]:
    """Return the instances of a project or environment that reported since a time, by default in
    the last half hour.

    Helper processes are excluded.
    """
    rows = _filter_recent(project_id, since).exclude(where_helping())
    if environment:
        rows = rows.filter(environment=environment)
    # Read JSON as text and parse each distinct text once; most rows repeat the same few texts.
    said = rows.annotate(
        can=Cast("capabilities", TextField()), latched=Cast("latched_eager", TextField())
    )
    read = cache(json.loads)
    columns = fetch_rows(said.values_list(*_PLAIN, "cold_start__total", "can", "latched"))
    return [
        RecentInstance._make((*row, read(can), read(latched))) for *row, can, latched in columns
    ]


def count_recent_helpers(*, project_id: int) -> Counter[str]:
    """Return the number of helper processes by role in the last half hour; one query."""
    rows = _filter_recent(project_id).filter(where_helping()).exclude(where_ended()).order_by()
    return Counter(dict(rows.values("role").annotate(n=Count("pk")).values_list("role", "n")))


def has_silent_process(*, project_id: int, after: float) -> bool:
    """Return whether any process of the last half hour is silent for `after` seconds without an
    end; one query."""
    return (
        _filter_recent(project_id)
        .filter(last_seen_at__lt=clock.now() - timedelta(seconds=after))
        .exclude(where_ended())
        .exists()
    )


def _filter_recent(project_id: int, since: datetime | None = None) -> QuerySet[Instance]:
    since = since or clock.now() - timedelta(seconds=GONE_AFTER_S)
    return Instance.objects.filter(project_id=project_id, last_seen_at__gte=since).exclude(
        instance_id__startswith=OTHER_INSTANCE_PREFIX
    )
