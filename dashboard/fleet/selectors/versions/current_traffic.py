"""Current traffic: calls and instances of a model and of one version in the last minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, QuerySet, Sum

from dashboard.common import clock
from dashboard.common.raw_queries import Rows
from dashboard.fleet.models import Deployment, Instance, Series, VersionMinute
from dashboard.fleet.selectors.instances.role_filters import where_counted
from dashboard.fleet.selectors.versions.compiled_share import NOW_MINUTES
from dashboard.fleet.selectors.versions.version_series import SeriesInfo


@dataclass(frozen=True)
class CurrentTraffic:
    """The last minutes in one environment: calls and instances of all versions and of one."""

    calls: int = 0
    own_calls: int = 0
    instances: int = 0
    own_instances: int = 0

    @property
    def share(self) -> float | None:
        """The version's share of the calls; None without calls."""
        return self.own_calls / self.calls if self.calls else None

    @property
    def per_second(self) -> float:
        """Calls of the version per second."""
        return self.own_calls / (NOW_MINUTES * 60)


def query_current_traffic(deployment: Deployment) -> tuple[QuerySet[Any, Any], QuerySet[Any, Any]]:
    """Query the two lists that `sum_current_traffic` reads: calls by series, instances by
    version."""
    first = clock.minute_of(clock.unix()) - NOW_MINUTES
    of_model = Series.objects.filter(
        version__model_id=deployment.model_id,
        environment=deployment.environment,
        outermost=True,
        last_minute__gte=first,
    )
    calls = VersionMinute.objects.filter(
        project_id=deployment.project_id,
        day__gte=first // 1440,
        series_id__in=of_model.values("pk"),
        minute__gte=first,
    )
    instances = Instance.objects.filter(
        where_counted(),
        model_id=deployment.model_id,
        environment=deployment.environment,
        last_minute__gte=first,
    )
    return (
        calls.order_by().values_list("series_id").annotate(total=Sum("calls")),
        instances.order_by().values_list("version_id").annotate(total=Count("pk")),
    )


def sum_current_traffic(
    calls: Rows,
    instances: Rows,
    series: Mapping[int, SeriesInfo],
    version_id: int,
) -> CurrentTraffic:
    """Return the sums; `series` has those of the version."""
    counts: dict[int, int] = dict(instances)
    own = {id for id, facts in series.items() if facts.version_id == version_id}
    return CurrentTraffic(
        calls=sum(count for _, count in calls),
        own_calls=sum(count for id, count in calls if id in own),
        instances=sum(counts.values()),
        own_instances=counts.get(version_id, 0),
    )
