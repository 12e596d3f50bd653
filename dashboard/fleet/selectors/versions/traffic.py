"""Traffic: callers' calls of a model by version and minute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.db.models import Q, Sum

from dashboard.fleet.models import Deployment, Series, VersionMinute
from dashboard.fleet.selectors.versions.version_series import Span

Calls = dict[int, dict[int, int]]
"""Calls by version, then by minute."""


def count_calls_by_minute(*, deployment: Deployment, spans: Sequence[Span]) -> Calls:
    """Return the calls of all versions of the deployment's model in its environment, in time spans;
    two queries."""
    rows = Series.objects.filter(
        version__model_id=deployment.model_id, environment=deployment.environment, outermost=True
    )
    since = min(span.first for span in spans)
    series = dict(rows.filter(last_minute__gte=since).values_list("pk", "version_id"))
    inside = Q()
    for first, last in spans:
        inside |= Q(
            day__gte=first // 1440, day__lte=(last - 1) // 1440, minute__gte=first, minute__lt=last
        )
    minutes = VersionMinute.objects.filter(
        inside, project_id=deployment.project_id, series_id__in=list(series)
    )
    found: Calls = defaultdict(lambda: defaultdict(int))
    for series_id, minute, calls in (
        minutes.values_list("series_id", "minute").annotate(total=Sum("calls")).order_by()
    ):
        found[series[series_id]][minute] += calls
    return found
