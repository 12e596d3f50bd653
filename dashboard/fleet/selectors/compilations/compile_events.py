"""Compile events: queries of the compilations of versions within a time span."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from django.db.models import QuerySet

from dashboard.fleet.models import CompileEvent
from dashboard.fleet.selectors.compilations.cache_outcomes import COMPILATION


def filter_compile_events(
    *, project_id: int, version_ids: Collection[int], environment: str, first: int, last: int
) -> QuerySet[CompileEvent]:
    """Return a query of the compilations of versions in an environment.

    `first` and `last` are minutes since 1970, `last` exclusive. CUDA graph recordings are excluded.
    """
    since, until = (datetime.fromtimestamp(minute * 60, UTC) for minute in (first, last))
    return CompileEvent.objects.filter(
        COMPILATION,
        project_id=project_id,
        day__gte=first // 1440,
        day__lte=last // 1440,
        version_id__in=version_ids,
        environment=environment,
        at__gte=since,
        at__lt=until,
    )
