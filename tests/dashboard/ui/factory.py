"""Creates a small fleet through the ORM: simulated models with one day of minutes, instances and
cold starts."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from compilewatch.wire.sketch import Sketch

from dashboard.accounts.models import User
from dashboard.common import clock
from dashboard.fleet.models import (
    ColdStart,
    Deployment,
    Instance,
    ModelVersion,
    Series,
    Stratum,
    VersionHour,
    VersionMinute,
    VersionProcessHour,
    VersionProcessMinute,
    WatchedModel,
)
from dashboard.fleet.partitions import partitions_ensure
from dashboard.projects.models import Member, Project, Role
from tests.dashboard.bulk_insert import insert_rows

GIB = 1 << 30
RECENT = 16
PASSWORD = "a long enough password"


@dataclass(frozen=True)
class Shape:
    """Behavior of one version of the fleet; minutes count back from now."""

    name: str
    p50: float
    calls: int
    start: int
    end: int | None = None
    eager: float = 0.0
    instances: int = 3
    hit_share: float = 0.96
    cold: float = 48.0
    peak: float = 31.2
    silent: int = 0


def now_minute() -> int:
    """The current minute."""
    return clock.minute_of(clock.unix())


def person(name: str, project: Project | None = None, role: Role = Role.VIEWER) -> User:
    """A user who can sign in with PASSWORD."""
    user = User.objects.create_user(username=name, password=PASSWORD)
    if project is not None:
        Member.objects.create(project=project, user=user, role=role, created_at=clock.now())
    return user


def project(name: str = "Search and chat", slug: str = "search-and-chat") -> Project:
    """An empty project."""
    return Project.objects.create(name=name, slug=slug, created_at=clock.now())


def model(
    owner: Project,
    name: str,
    versions: Sequence[Shape],
    *,
    every: int = 1,
    budget: float | None = 90.0,
    gpu: str = "NVIDIA H200",
) -> WatchedModel:
    """A model with its versions, instances and minutes; `every` thins out all minutes except the
    latest."""
    partitions_ensure(today=now_minute() // 1440)
    now = clock.now()
    made = WatchedModel.objects.create(
        project=owner,
        name=name,
        first_seen_at=now - timedelta(days=9),
        last_seen_at=now,
        simulated=True,
        cold_start_budget=budget,
    )
    stratum, _ = Stratum.objects.get_or_create(
        project=owner, gpu=gpu, mode="reduce-overhead", runtime="torch.compile", world_size=1
    )
    for shape in versions:
        _version(owner, made, stratum, shape, every)
    return made


def _version(
    owner: Project, made: WatchedModel, stratum: Stratum, shape: Shape, every: int
) -> None:
    now, minute = clock.now(), now_minute()
    last = minute - 1 - (shape.end or 0)
    version = ModelVersion.objects.create(
        project=owner,
        model=made,
        name=shape.name,
        first_seen_at=now,
        last_seen_at=now,
        last_minute=last,
        revision=1,
    )
    Deployment.objects.create(
        project=owner,
        model=made,
        version=version,
        environment="production",
        started_minute=minute - shape.start,
        last_minute=last,
        ended_minute=last if shape.end else None,
    )
    series = Series.objects.create(
        project=owner,
        version=version,
        environment="production",
        stratum=stratum,
        region="forward",
        bucket="2^12",
        last_minute=last,
    )
    first, recent = max(minute - shape.start, minute - 1440), last - RECENT
    _minutes(
        owner,
        version,
        series,
        shape,
        [*range(first, recent, every), *range(max(first, recent), last + 1)],
    )
    if not shape.end:
        _instances(owner, made, version, shape, stratum.gpu)


def _minutes(
    owner: Project, version: ModelVersion, series: Series, shape: Shape, minutes: Sequence[int]
) -> None:
    noise = random.Random(f"{shape.name} {version.model.name}")
    calls, processes = [], []
    for minute in minutes:
        level = shape.p50 * (1 + 0.03 * math.sin(minute / 230) + noise.gauss(0, 0.008))
        calls.append(
            dict(
                project_id=owner.pk,
                day=minute // 1440,
                series_id=series.pk,
                minute=minute,
                **_calls(shape, level),
            )
        )
        processes.append(_process(owner, version, shape, minute))
    insert_rows(VersionMinute, calls)
    insert_rows(VersionProcessMinute, processes)
    hours = sorted({minute // 60 for minute in minutes})
    insert_rows(
        VersionHour,
        [
            dict(
                project_id=owner.pk,
                day=hour // 24,
                series_id=series.pk,
                hour=hour,
                **_calls(shape, shape.p50),
            )
            for hour in hours
        ],
    )
    insert_rows(VersionProcessHour, [_process_hour(owner, version, shape, hour) for hour in hours])


def _calls(shape: Shape, level: float) -> dict[str, Any]:
    eager = round(shape.calls * shape.eager)
    return {
        "calls": shape.calls,
        "compiled": shape.calls - eager,
        "eager_limit": eager,
        "sampled": shape.calls,
        "covered": 60.0,
        "latency": _sketch(round(level * 4000) / 4000, shape.calls),
        "latency_count": shape.calls,
        "latency_sum": level * shape.calls,
        "p50": level,
        "p95": level * 1.8,
        "p99": level * 3.1,
    }


@cache
def _sketch(level: float, calls: int) -> bytes:
    return Sketch.of(
        level * math.exp(0.35 * math.sqrt(2) * _probit((i + 0.5) / calls)) for i in range(calls)
    ).pack()


def _probit(share: float) -> float:
    return math.log(share / (1 - share)) / 1.702


def _process_facts(shape: Shape) -> dict[str, Any]:
    return {
        "windows": 6 * shape.instances,
        "covered": 60.0,
        "hit_seconds": shape.hit_share,
        "miss_seconds": 1 - shape.hit_share,
        "gpu_peak": int(shape.peak * GIB),
        "host_rss": 9 * GIB,
        "instances": shape.instances,
        "gpu_type": "NVIDIA H200",
        "environment": "production",
    }


def _process(owner: Project, version: ModelVersion, shape: Shape, minute: int) -> dict[str, Any]:
    return dict(
        project_id=owner.pk,
        day=minute // 1440,
        version_id=version.pk,
        minute=minute,
        **_process_facts(shape),
    )


def _process_hour(owner: Project, version: ModelVersion, shape: Shape, hour: int) -> dict[str, Any]:
    return dict(
        project_id=owner.pk,
        day=hour // 24,
        version_id=version.pk,
        hour=hour,
        **_process_facts(shape),
    )


def _instances(
    owner: Project, made: WatchedModel, version: ModelVersion, shape: Shape, gpu: str
) -> None:
    now, minute = clock.now(), now_minute()
    for number in range(shape.instances):
        silent = number < shape.silent
        eager = shape.eager > 0
        instance = Instance.objects.create(
            project=owner,
            instance_id=f"{version.pk:06d}{number:020d}",
            model=made,
            version=version,
            environment="production",
            host=f"gpu-h200-{number:02d}",
            gpu=gpu,
            torch="2.13.0",
            simulated=True,
            started_at=now - timedelta(minutes=shape.start),
            ready_at=now - timedelta(minutes=shape.start - 1),
            first_minute=minute - shape.start,
            active_minute=minute - shape.start,
            last_minute=minute - 1,
            last_seen_at=now - timedelta(seconds=370 if silent else 6),
            latched_eager=[{"frame": "score_batch", "cause": "limit", "at": clock.unix()}]
            if eager
            else [],
            capabilities={"compiled_calls": ["yes", ""], "compilations": ["yes", ""]},
        )
        ColdStart.objects.create(
            instance=instance,
            project=owner,
            version=version,
            started_at=instance.started_at,
            total=shape.cold + number,
        )
