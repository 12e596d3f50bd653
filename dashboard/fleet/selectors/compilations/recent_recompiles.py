"""Recent recompiles: recompiles of a version within the last hour, by function and reason."""

from __future__ import annotations

from typing import NamedTuple

from django.db.models import Count

from dashboard.common.clock import at_minute
from dashboard.fleet.models import CompileEvent, Deployment

RECENT_MINUTES = 60
MOST_REASONS = 500


class RecompileCount(NamedTuple):
    """Recompiles of one function for one kind of reason. `text` is the first line of the most
    frequent reason."""

    frame: str
    kind: str
    text: str
    times: int


def count_recompiles(*, deployment: Deployment, now_minute: int) -> list[RecompileCount]:
    """Return the recompiles of the last hour, the most frequent first; one query."""
    since = max(deployment.started_minute, now_minute - RECENT_MINUTES)
    rows = CompileEvent.objects.filter(
        project_id=deployment.project_id,
        day__gte=since // 1440,
        day__lte=now_minute // 1440,
        version_id=deployment.version_id,
        environment=deployment.environment,
        kind="recompile",
        at__gte=at_minute(since),
    )
    counted = (
        rows.values("frame", "reason_kind", "reason")
        .annotate(n=Count("number"))
        .order_by("-n", "frame", "reason_kind", "reason")
    )
    found: dict[tuple[str, str], RecompileCount] = {}
    for frame, kind, reason, count in counted.values_list("frame", "reason_kind", "reason", "n")[
        :MOST_REASONS
    ]:
        known = found.get(
            (frame, kind),
            RecompileCount(frame, kind, next(iter(reason.strip().splitlines()), ""), 0),
        )
        found[frame, kind] = known._replace(times=known.times + count)
    return sorted(found.values(), key=lambda one: (-one.times, one.frame, one.kind))
