"""What the compile caches answered to the versions of a model, by count and by seconds, and why compilations were not in them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from compilewatch.wire.causes import NO_EARLIER_RUN
from django.db.models import Count, Max, Sum

from dashboard.fleet.models import CompileEvent
from dashboard.fleet.selectors.compile_events import compile_events_within

CACHES = ("fx", "aot", "autotune", "bundle", "mega")
MOST_UNEXPLAINED, MOST_STARTS = 40, 60


class Answered(NamedTuple):
    """Compilations of one version that got the same answers, and missed for one cause if they missed; seconds are those of the whole
    compilations."""

    version_id: int
    answers: dict[str, str]
    miss: str
    compilations: int
    seconds: float
    saved: float


class Unexplained(NamedTuple):
    """Compilations of one instance that missed, and whose agent knew no earlier run."""

    version_id: int
    instance_id: int
    compilations: int
    seconds: float


class StartMissed(NamedTuple):
    """Compilations of one instance that were in no cache, by cause."""

    cause: str
    compilations: int
    seconds: float


def version_caches(*, project_id: int, version_ids: Collection[int], environment: str, first: int, last: int) -> list[Answered]:
    """What the compilations within minutes since 1970 got for an answer."""
    columns = [f"cache_{cache}" for cache in CACHES]
    rows = compile_events_within(project_id=project_id, version_ids=version_ids, environment=environment, first=first, last=last).values(
        "version_id", "miss", *columns
    )
    found = rows.annotate(n=Count("number"), seconds=Sum("total"), spared=Sum("saved")).order_by()
    return [
        Answered(
            row["version_id"],
            {cache: row[f"cache_{cache}"] for cache in CACHES if row[f"cache_{cache}"]},
            row["miss"],
            row["n"],
            row["seconds"] or 0.0,
            row["spared"] or 0.0,
        )
        for row in found
    ]


def unexplained_misses(*, project_id: int, version_ids: Collection[int], environment: str, first: int, last: int) -> list[Unexplained]:
    """The instances whose agents could not compare; the newest first."""
    rows = (
        compile_events_within(project_id=project_id, version_ids=version_ids, environment=environment, first=first, last=last)
        .filter(miss=NO_EARLIER_RUN)
        .values("version_id", "instance_id")
    )
    found = rows.annotate(n=Count("number"), seconds=Sum("total"), newest=Max("at")).order_by("-newest", "instance_id")
    return [Unexplained(row["version_id"], row["instance_id"], row["n"], row["seconds"] or 0.0) for row in found[:MOST_UNEXPLAINED]]


def start_misses(*, project_id: int, instance_ids: Collection[int], since: datetime | None) -> dict[int, list[StartMissed]]:
    """By instance, why its compilations were in no cache; the most costly cause first. `since` is before all of their starts."""
    if not instance_ids or since is None:
        return {}
    rows = CompileEvent.objects.filter(project_id=project_id, day__gte=int(since.timestamp() // 86400), instance_id__in=instance_ids)
    counted = rows.exclude(miss="").values("instance_id", "miss").annotate(n=Count("number"), seconds=Sum("total"))
    found: dict[int, list[StartMissed]] = {}
    for row in counted.order_by("-seconds", "miss"):
        found.setdefault(row["instance_id"], []).append(StartMissed(row["miss"], row["n"], row["seconds"] or 0.0))
    return found
