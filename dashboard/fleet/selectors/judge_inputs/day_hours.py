"""Day hours: hourly calls of a model's versions before a deployment, as the judge reads them."""

from __future__ import annotations

from dashboard.fleet.models import Deployment, Series, VersionHour
from dashboard.fleet.selectors.judge_inputs.independent_units import JudgedProcess
from dashboard.fleet.selectors.judge_inputs.judge_minutes import (
    MINUTE_COLUMNS,
    JudgedMinute,
    make_minute,
    read_series,
)
from dashboard.projects.selectors import for_project

HOUR_MINUTES, DAY_HOURS = 60, 24
HOUR_COLUMNS = ("series_id", "series_id", "hour", *MINUTE_COLUMNS[3:])


def read_day_hours(*, deployment: Deployment, days: int) -> list[JudgedMinute]:
    """Return the calls of each whole hour of the days before the deployment, over all instances, in
    its environment; three queries.

    The unit is the series, so each unit is of one version. The minute is the hour's first one.
    """
    last = deployment.started_minute // HOUR_MINUTES
    first = last - days * DAY_HOURS
    versions = Series.objects.filter(
        version__model_id=deployment.model_id,
        environment=deployment.environment,
        outermost=True,
        last_minute__gte=first * HOUR_MINUTES,
    ).values_list("version_id", flat=True)
    series = read_series("baseline", set(versions), deployment.environment, {})
    rows = for_project(VersionHour, deployment.project_id).filter(
        day__gte=first // DAY_HOURS,
        day__lte=last // DAY_HOURS,
        hour__gte=first,
        hour__lt=last,
        series_id__in=[id for id, where in series.items() if where.outermost],
    )
    found = []
    for row in rows.values_list(*HOUR_COLUMNS):
        minute = row[2] * HOUR_MINUTES
        name = str(row[0])
        hour = JudgedProcess(name, name, "", "", 1, minute, minute)
        found.append(make_minute(row, hour, series[row[1]], ())._replace(minute=minute))
    return found
