"""Creates one model for the chart pages through the ORM: two concurrent versions in two cohorts and
two shape buckets, with configurations and a gap of ten minutes in the middle."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

from compilewatch.wire.sketch import Sketch

from dashboard.common import clock
from dashboard.fleet.models import (
    ColdStart,
    Deployment,
    Instance,
    ModelVersion,
    RegionMinute,
    Series,
    Stratum,
    VersionHour,
    VersionMinute,
    VersionProcessHour,
    VersionProcessMinute,
    WatchedModel,
)
from dashboard.fleet.partitions import partitions_ensure
from dashboard.projects.models import Project
from tests.dashboard.bulk_insert import insert_rows

GIB = 1 << 30
ENVIRONMENT = "production"
GPUS = {"NVIDIA H200": 0.9, "NVIDIA H100": 1.1}
BUCKETS = {"2^8": 1.0, "2^12": 1.6}
GAP = range(90, 100)
"""Minutes before now without a report."""


@dataclass(frozen=True)
class Plan:
    """One version: its latency, its start and end (minutes before now), and its share of eager
    calls."""

    name: str
    p50: float = 0.014
    start: int = 400
    end: int = 0
    eager: float = 0.0
    per_gpu: int = 2
    calls: int = 60
    hit: float = 0.95
    peak: float = 30.8


HEALTHY = Plan("2026.11.2", start=220)
WORSE = Plan("2026.11.3", p50=0.0184, start=130, eager=0.288, peak=31.2)
OLDER = Plan("2026.10.9", p50=0.0146, start=640, end=480)


@dataclass
class Made:
    """The created rows."""

    project: Project
    model: WatchedModel
    versions: dict[str, ModelVersion]
    deployments: dict[str, Deployment]

    def url(self, rest: str = "") -> str:
        """The address of the model's page."""
        return f"/p/{self.project.slug}/models/{self.model.pk}/{rest}"

    def pair(self, a: str, b: str) -> str:
        """The address of the comparison of two versions."""
        return self.url(f"compare?a={self.versions[a].pk}&b={self.versions[b].pk}")


def now_minute() -> int:
    """The current minute."""
    return clock.minute_of(clock.unix())


def charted(project: Project, *plans: Plan, name: str = "ranker") -> Made:
    """A model with its versions, without a verdict."""
    for back in range(4):
        partitions_ensure(today=now_minute() // 1440 - back)
    now = clock.now()
    model = WatchedModel.objects.create(
        project=project,
        name=name,
        first_seen_at=now - timedelta(days=9),
        last_seen_at=now,
        simulated=True,
        cold_start_budget=90.0,
    )
    made = Made(project, model, {}, {})
    for plan in plans:
        _version(made, plan)
    return made


def _version(made: Made, plan: Plan) -> None:
    now, minute = clock.now(), now_minute()
    last = minute - 1 - plan.end
    version = ModelVersion.objects.create(
        project=made.project,
        model=made.model,
        name=plan.name,
        first_seen_at=now - timedelta(minutes=plan.start),
        last_seen_at=now - timedelta(minutes=plan.end),
        last_minute=last,
        revision=1,
    )
    made.versions[plan.name] = version
    made.deployments[plan.name] = Deployment.objects.create(
        project=made.project,
        model=made.model,
        version=version,
        environment=ENVIRONMENT,
        started_minute=minute - plan.start,
        last_minute=last,
        ended_minute=last if plan.end else None,
    )
    minutes = [m for m in range(minute - plan.start, last + 1) if minute - m not in GAP]
    for gpu, factor in GPUS.items():
        _stratum(made, version, replace(plan, p50=plan.p50 * factor), gpu, minutes)


def _stratum(made: Made, version: ModelVersion, plan: Plan, gpu: str, minutes: list[int]) -> None:
    stratum, _ = Stratum.objects.get_or_create(
        project=made.project, gpu=gpu, mode="reduce-overhead", runtime="torch.compile", world_size=1
    )
    instances = [_instance(made, version, plan, gpu, number) for number in range(plan.per_gpu)]
    for bucket, factor in BUCKETS.items():
        series = Series.objects.create(
            project=made.project,
            version=version,
            environment=ENVIRONMENT,
            stratum=stratum,
            region="score_batch",
            bucket=bucket,
            last_minute=minutes[-1],
        )
        _calls(made, series, replace(plan, p50=plan.p50 * factor), instances, minutes)
    _processes(made, version, plan, gpu, minutes)


def _calls(
    made: Made, series: Series, plan: Plan, instances: list[Instance], minutes: list[int]
) -> None:
    noise = random.Random(f"{plan.name} {series.region} {series.bucket}")
    hosts = {instance.pk: math.exp(noise.gauss(0, 0.02)) for instance in instances}
    hours: dict[int, tuple[Sketch, int]] = {}
    by_minute, by_instance = [], []
    for minute in minutes:
        whole = Sketch()
        for instance in instances:
            level = plan.p50 * hosts[instance.pk] * (1 + 0.02 * math.sin(minute / 40))
            sketch = _sketch(round(math.log(level), 2), plan.calls, noise.randrange(5))
            whole.merge(sketch)
            columns = _columns(plan, sketch)
            by_instance.append(
                dict(
                    project_id=made.project.pk,
                    day=minute // 1440,
                    instance_id=instance.pk,
                    series_id=series.pk,
                    minute=minute,
                    **columns,
                )
            )
        by_minute.append(
            dict(
                project_id=made.project.pk,
                day=minute // 1440,
                series_id=series.pk,
                minute=minute,
                **_columns(plan, whole),
            )
        )
        hours.setdefault(minute // 60, (Sketch(), 0))[0].merge(whole)
    insert_rows(RegionMinute, by_instance)
    insert_rows(VersionMinute, by_minute)
    insert_rows(
        VersionHour,
        (
            dict(
                project_id=made.project.pk,
                day=hour // 24,
                series_id=series.pk,
                hour=hour,
                **_columns(plan, sketch),
            )
            for hour, (sketch, _) in hours.items()
        ),
    )


@cache
def _sketch(level: float, calls: int, draw: int) -> Sketch:
    noise = random.Random(draw)
    return Sketch.of(math.exp(level) * noise.lognormvariate(0, 0.25) for _ in range(calls))


def _columns(plan: Plan, sketch: Sketch) -> dict[str, Any]:
    eager = round(sketch.count * plan.eager)
    return {
        "calls": sketch.count,
        "compiled": sketch.count - eager,
        "eager_limit": eager,
        "sampled": sketch.count,
        "latency": sketch.pack(),
        "latency_count": sketch.count,
        "latency_sum": sketch.sum,
        "p50": sketch.quantile(0.5),
        "p95": sketch.quantile(0.95),
        "p99": sketch.quantile(0.99),
    }


def _processes(made: Made, version: ModelVersion, plan: Plan, gpu: str, minutes: list[int]) -> None:
    def facts(starting: bool, covered: float) -> dict[str, Any]:
        return {
            "project_id": made.project.pk,
            "version_id": version.pk,
            "environment": ENVIRONMENT,
            "gpu_type": gpu,
            "instances": plan.per_gpu,
            "covered": covered * plan.per_gpu,
            "compile_seconds": 29.0 * plan.per_gpu if starting else 0.0,
            "recompiles": 8 * plan.per_gpu if starting and plan.eager else 0,
            "hit_seconds": 29 * plan.hit if starting else 0.0,
            "miss_seconds": 29 * (1 - plan.hit) if starting else 0.0,
            "gpu_peak": int(plan.peak * GIB),
            "host_rss": int(18.4 * GIB),
        }

    first = minutes[0]
    insert_rows(
        VersionProcessMinute,
        (
            dict(day=minute // 1440, minute=minute, **facts(minute < first + 2, 60.0))
            for minute in minutes
        ),
    )
    insert_rows(
        VersionProcessHour,
        (
            dict(day=hour // 24, hour=hour, **facts(hour == first // 60, 60.0 * count))
            for hour, count in sorted(Counter(m // 60 for m in minutes).items())
        ),
    )


def _instance(made: Made, version: ModelVersion, plan: Plan, gpu: str, number: int) -> Instance:
    now, minute = clock.now(), now_minute()
    started = now - timedelta(minutes=plan.start)
    configured = {
        "mode": "default" if plan.eager else "reduce-overhead",
        "torch": "2.13.0",
        "inductor_config": "b07e35d" if plan.eager else "4f1c9a2",
    }
    instance = Instance.objects.create(
        project=made.project,
        instance_id=f"{version.pk:06d}{gpu[-4:]:>4}{number:016d}",
        model=made.model,
        version=version,
        environment=ENVIRONMENT,
        host=f"gpu-{gpu[-4:].lower()}-{number:02d}",
        gpu=gpu,
        torch="2.13.0",
        simulated=True,
        identity={"gpu": gpu, "torch": "2.13.0", "host": f"gpu-{number}", "cuda": "13.0"},
        components=configured,
        started_at=started,
        first_minute=minute - plan.start,
        active_minute=minute - plan.start,
        last_minute=minute - 1 - plan.end,
        last_seen_at=now,
        latched_eager=[
            {
                "frame": "score_batch",
                "cause": "recompile limit of 8 reached: candidates.size(0) == 96",
                "at": 0,
            }
        ]
        if plan.eager
        else [],
    )
    ColdStart.objects.create(
        instance=instance,
        project=made.project,
        version=version,
        started_at=started,
        total=47.0 + number,
    )
    return instance
