"""Eight weeks of hourly data of a model through the ORM, in two periods of four weeks that
differ."""

from __future__ import annotations

from collections.abc import Callable

from dashboard.common import clock
from dashboard.fleet.models import (
    Deployment,
    ModelVersion,
    Series,
    Stratum,
    VersionHour,
    WatchedModel,
)
from dashboard.fleet.partitions import partitions_ensure
from dashboard.projects.models import Project

GPU = "NVIDIA H100"


def weeks(project: Project, p50: Callable[[int], float], *, name: str = "ranker", days: int = 56, gpu: Callable[[int], str] = lambda _: GPU,
          compiled: Callable[[int], int] = lambda _: 998) -> WatchedModel:  # fmt: skip
    """Three hours of data per day; `p50`, `gpu` and `compiled` receive the number of days ago, from
    1 for yesterday to `days`."""
    today, now = int(clock.unix() // 86400), clock.now()
    model = WatchedModel.objects.create(
        project=project,
        name=name,
        first_seen_at=clock.at_minute((today - days) * 1440),
        last_seen_at=now,
        simulated=True,
    )
    version = ModelVersion.objects.create(
        project=project,
        model=model,
        name="1",
        first_seen_at=now,
        last_seen_at=now,
        last_minute=today * 1440,
        revision=1,
    )
    Deployment.objects.create(
        project=project, model=model, version=version, environment="production",
        started_minute=(today - days) * 1440, last_minute=today * 1440,
    )  # fmt: skip
    rows = []
    for ago in range(1, days + 1):
        day = today - ago
        partitions_ensure(today=day)
        series = _series(version, gpu(ago), today)
        for hour in (day * 24, day * 24 + 9, day * 24 + 17):
            level = p50(ago) * (1 + 0.01 * (-1) ** ago)
            columns = {
                "calls": 1000,
                "compiled": compiled(ago),
                "eager_limit": 1000 - compiled(ago),
                "latency_count": 1000,
            }
            rows.append(
                VersionHour(
                    project_id=project.pk,
                    day=day,
                    series_id=series,
                    hour=hour,
                    p50=level,
                    p99=3 * level,
                    **columns,
                )
            )
    VersionHour.objects.bulk_create(rows)
    return model


def _series(version: ModelVersion, gpu: str, today: int) -> int:
    stratum, _ = Stratum.objects.get_or_create(
        project=version.project, gpu=gpu, mode="default", runtime="torch.compile", world_size=1
    )
    series, _ = Series.objects.get_or_create(
        project=version.project, version=version, environment="production", stratum=stratum, region="forward", bucket="2^8",
        defaults={"last_minute": today * 1440},
    )  # fmt: skip
    return series.pk
