"""The newest compilations of some versions."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from dashboard.fleet.models import CompileEvent


def compile_events_newest(
    *, project_id: int, version_ids: Collection[int], environment: str, first: int, last: int, most: int
) -> list[CompileEvent]:
    """The newest compilations within minutes since 1970, newest first."""
    since, until = (datetime.fromtimestamp(minute * 60, UTC) for minute in (first, last))
    rows = CompileEvent.objects.filter(
        project_id=project_id,
        day__gte=first // 1440,
        day__lte=last // 1440,
        version_id__in=version_ids,
        environment=environment,
        at__gte=since,
        at__lt=until,
    )
    return list(rows.order_by("-at", "seq", "number")[:most])
