"""Uncompiled regions: regions with requested compilation whose calls never ran compiled.

Also reports whether another version served such a region compiled.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from django.db.models import Count, F, Sum

from dashboard.common import clock
from dashboard.fleet.fold.keys import OTHER, OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import Deployment, FindingInstance, RegionMinute, Series, VersionHour
from dashboard.fleet.selectors.judge_inputs.deterministic_facts import LIVE_MINUTES, CertainRow
from dashboard.fleet.selectors.versions.compiled_share import EAGER_RUNTIME

FACT_KIND = "compiled_nothing"
DEFAULT_REASON = "compilation was requested, but no call ran compiled"
_REASON_PREFIX = "no call met compiled code: "
"""Text before the agent's own reason."""
BASELINE_HOURS = 24
"""Hours before a baseline's last minute in which it may have served a region compiled."""


class _Text(NamedTuple):
    text: str
    where: str

    def names(self, region: str) -> bool:
        return (
            re.search(rf"(?<![\w.]){re.escape(region)}(?![\w.])", f"{self.text}\n{self.where}")
            is not None
        )

    def why(self) -> str:
        """Return the first clause of the agent's reason, and the location."""
        reason = self.text.partition(_REASON_PREFIX)[2].partition(":")[0]
        return f"{reason} ({self.where})" if reason and self.where else reason or DEFAULT_REASON


class _InstanceReport(NamedTuple):
    instance: str
    since: int
    texts: tuple[_Text, ...] = ()

    def why(self, region: str) -> str | None:
        """Return why the region compiled nothing; None if no report names the region."""
        return next((text.why() for text in self.texts if text.names(region)), None)


def list_uncompiled_regions(*, deployment: Deployment, now_minute: int) -> list[CertainRow]:
    """Return one row per live instance and region; one query without reports, else two."""
    first = now_minute - LIVE_MINUTES
    here = {
        "instance__version_id": deployment.version_id,
        "instance__environment": deployment.environment,
    }
    seen = FindingInstance.objects.filter(
        finding__kind=FACT_KIND, **here, instance__last_minute__gte=first
    )
    seen = seen.exclude(instance__instance_id__startswith=OTHER_INSTANCE_PREFIX).order_by(
        "first_seen_at", "pk"
    )
    reported: dict[int, _InstanceReport] = {}
    for pk, instance, at, text, where in seen.values_list(
        "instance_id", "instance__instance_id", "first_seen_at", "finding__text", "finding__where"
    ):
        known = reported.get(pk, _InstanceReport(instance, clock.minute_of(at.timestamp())))
        reported[pk] = known._replace(texts=(*known.texts, _Text(text, where)))
    if not reported:
        return []
    found: list[CertainRow] = []
    eager = _eager_regions(deployment, reported, first, now_minute)
    for pk, one in reported.items():
        regions = eager.get(pk, {})
        named = {region: why for region in regions if (why := one.why(region)) is not None}
        # Among regions that no report names, exclude those that run eager on purpose.
        others = {
            region: DEFAULT_REASON for region, on_purpose in regions.items() if not on_purpose
        }
        found += [
            CertainRow(FACT_KIND, one.instance, one.since, region, why)
            for region, why in (named or others).items()
        ]
    return found


def read_compiled_regions(*, deployment: Deployment, regions: Collection[str]) -> dict[str, bool]:
    """Return the regions that a version served compiled on its last day; one query.

    The value is True if the agents distinguish calls without a graph. Agents that do not report
    stalled calls count calls without a graph as compiled.
    """
    last = deployment.last_minute // 60
    first = max(deployment.started_minute // 60, last - BASELINE_HOURS)
    series = dict(
        Series.objects.filter(
            version_id=deployment.version_id,
            environment=deployment.environment,
            region__in=list(regions),
        ).values_list("pk", "region")
    )
    rows = VersionHour.objects.filter(
        project_id=deployment.project_id, day__gte=first // 24, day__lte=last // 24
    )
    rows = rows.filter(series_id__in=list(series), hour__gte=first, hour__lte=last, compiled__gt=0)
    found: dict[str, bool] = {}
    counted = rows.values("series_id").annotate(reporting=Count("stalled_count")).order_by()
    for id, reporting in counted.values_list("series_id", "reporting"):
        found[series[id]] = found.get(series[id], False) or reporting > 0
    return found


def _eager_regions(
    deployment: Deployment, instances: Collection[int], first: int, last: int
) -> dict[int, dict[str, bool]]:
    """Return the called regions by instance that never ran compiled, not even in part.

    The value is True if all calls of the region count as eager runtime. Calls that never met the
    compiler count as eager too, even if compilation was requested.
    """
    names = _read_recent_series(deployment, first)
    rows = RegionMinute.objects.filter(
        project_id=deployment.project_id,
        day__gte=first // 1440,
        day__lte=last // 1440,
        series_id__in=list(names),
        minute__gte=first,
        minute__lt=last,
        instance_id__in=list(instances),
    )
    called: dict[tuple[int, str], list[int]] = {}
    compiling: set[tuple[int, str]] = set()
    counted = (
        rows.values("instance_id", "series_id")
        .annotate(n=Sum("calls"), served=Sum(F("compiled") + F("partial")))
        .order_by()
    )
    for instance, series_id, calls, served in counted.values_list(
        "instance_id", "series_id", "n", "served"
    ):
        region, on_purpose = names[series_id]
        sums = called.setdefault((instance, region), [0, 0])
        if not on_purpose:
            compiling.add((instance, region))
        sums[0] += calls
        sums[1] += served
    found: dict[int, dict[str, bool]] = {}
    for (instance, region), (calls, served) in sorted(called.items()):
        if calls and not served:
            found.setdefault(instance, {})[region] = (instance, region) not in compiling
    return found


def _read_recent_series(deployment: Deployment, first: int) -> dict[int, tuple[str, bool]]:
    """Return region and whether the runtime is eager, by series with data since minute `first`."""
    series = Series.objects.filter(
        version_id=deployment.version_id,
        environment=deployment.environment,
        last_minute__gte=first,
    ).exclude(region=OTHER)
    return {
        pk: (region, runtime == EAGER_RUNTIME)
        for pk, region, runtime in series.values_list("pk", "region", "stratum__runtime")
    }
