"""Data of the Health page: state of the installation, and the reports and notifications of one
project."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import django
from compilewatch.wire.ack import REJECTED_CODES
from compilewatch.wire.errors import ERROR_CODES
from django.conf import settings
from django.db import connection
from django.db.models import Min, Q

from dashboard import __version__
from dashboard.alerts.models import Channel, Delivery, DeliveryState
from dashboard.alerts.selectors import count_deliveries_by_state
from dashboard.common import clock
from dashboard.common.health import (
    Check,
    database_check,
    disk_check,
    list_heartbeats,
    migrations_check,
    worker_state,
    workers_check,
)
from dashboard.common.models import Heartbeat
from dashboard.fleet.fold.counters import COUNTER_MAX
from dashboard.fleet.models import Instance, InstanceState, StorageMeasure
from dashboard.fleet.models.limits import COUNTER
from dashboard.fleet.selectors.instances.instance_states import SEVERITY, instance_state
from dashboard.fleet.selectors.instances.recent_instances import (
    count_recent_helpers,
    list_recent_instances,
)
from dashboard.fleet.selectors.limits import LimitOverflow, count_limit_overflows
from dashboard.fleet.table_sizes import GOAL_BYTES_A_DAY
from dashboard.ingest.health import inbox_check
from dashboard.ingest.models import PoisonReport, Sender
from dashboard.ingest.selectors import (
    count_inbox_reports,
    count_inbox_reports_up_to,
    count_poison_reports,
    list_refusals_by_hour,
    read_intake_by_hour,
)
from dashboard.projects.cardinality_limits import LIMIT_PERIODS, read_limits
from dashboard.projects.models import Project
from dashboard.projects.rate_limit import read_quota, read_waiting_limit
from dashboard.projects.selectors import for_project
from dashboard.regressions.health import judge_check
from dashboard.vocabulary import numbers

HISTORY_HOURS = 24
FAST_ANSWER_S = 0.01
MAX_LISTED = 20
BAR_WIDTH, BAR_GAP, CHART_HEIGHT = 10, 2, 56
LOSSES = {
    "missing": "missing report intervals",
    "rejected_windows": "rejected report intervals",
    "truncated_events": "events over the limit of a report interval",
    "spool_errors": "errors of the disk buffer",
    "internal_errors": "internal agent errors",
    "merged_windows": "report intervals merged while the dashboard was unreachable",
}
"""Losses that agents report. Merged intervals lose no counts, only the separation by minute."""


@dataclass(frozen=True)
class HourBar:
    """One hour of the chart: accepted and refused reports, with the heights of their bars."""

    at: datetime
    taken: int
    refused: int
    x: int
    taken_high: float
    refused_high: float

    @property
    def taken_y(self) -> float:
        """Top of the bar."""
        return CHART_HEIGHT - self.taken_high

    @property
    def refused_y(self) -> float:
        """Top of the bar for refused reports."""
        return CHART_HEIGHT - self.taken_high - self.refused_high


@dataclass(frozen=True)
class HealthData:
    """Data of the page."""

    checks: list[Check]
    workers: list[tuple[Heartbeat, str]]
    waiting: int
    waiting_here: int
    """Waiting reports of this project, counted up to its quota."""
    quota: dict[str, float]
    bars: list[HourBar]
    taken: int
    taken_bytes: int
    refused: list[tuple[str, str, int, int]]
    poison: list[PoisonReport]
    poison_here: int
    poison_elsewhere: int
    processes: list[tuple[InstanceState, int]]
    """Processes that reported in the last half hour, by state."""
    helpers: list[tuple[str, int]]
    """Helpers of jobs, by role."""
    losses: list[tuple[Instance, list[tuple[str, int]]]]
    deliveries: dict[str, int]
    oldest_delivery: datetime | None
    channels_off: list[Channel]
    stands_on: list[tuple[str, str]]
    database_size: int | None
    storage: list[tuple[StorageMeasure, int]]
    over: list[tuple[LimitOverflow, int, str]]
    saturated: LimitOverflow | None
    """Hours with a counter that reached its maximum."""

    @property
    def counter_most(self) -> int:
        """Maximum of counters."""
        return COUNTER_MAX

    @property
    def most_taken(self) -> int:
        """Reports of the highest bar, which has the height of the chart."""
        return max((bar.taken + bar.refused for bar in self.bars), default=0)

    @property
    def wrong(self) -> list[Check]:
        """Failed checks."""
        return [check for check in self.checks if not check.ok]

    @property
    def database(self) -> Check:
        """Latency of the database."""
        return self._found("database")

    @property
    def inbox(self) -> Check:
        """Age of the oldest waiting report."""
        return self._found("inbox")

    @property
    def redis(self) -> str:
        """State of Redis, as the live workers report it."""
        if settings.EMBEDDED:
            return "not used in embedded mode"
        alive = [worker for worker, state in self.workers if state != "gone"]
        if not alive:
            return "unknown: no worker reports"
        return (
            f"{self.redis_away} does not respond; workers poll without Redis"
            if self.redis_away
            else "answers"
        )

    @property
    def redis_away(self) -> str:
        """Host and port of a Redis that a worker cannot reach; empty if all workers can. The
        installation works without Redis, but the operator should know."""
        return next(
            (worker.broker for worker, state in self.workers if state != "gone" and worker.broker),
            "",
        )

    @property
    def answers_in(self) -> str:
        """Latency of the database in seconds, rounded so that a polled page rarely changes."""
        took = self.database.value or 0.0
        return (
            f"<{numbers.SPACE}{numbers.duration(FAST_ANSWER_S)}"
            if took < FAST_ANSWER_S
            else numbers.duration(round(took, 2))
        )

    def _found(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)

    @property
    def last_fold(self) -> datetime | None:
        """Time when any worker last completed a run."""
        return max(
            (worker.folded_at for worker, _ in self.workers if worker.folded_at), default=None
        )


def read_health_data(*, project: Project) -> HealthData:
    """Reads the page in a fixed number of queries."""
    bars, taken, taken_bytes = _bars(project)
    elsewhere = count_poison_reports() - (here := count_poison_reports(project))
    waiting = Delivery.objects.filter(project=project, state=DeliveryState.WAITING)
    limits, over = (
        read_limits(project.settings).as_dict(),
        count_limit_overflows(project_id=project.pk, now=clock.unix()),
    )
    return HealthData(
        checks=[
            database_check(),
            migrations_check(),
            inbox_check(),
            judge_check(),
            workers_check(),
            disk_check(),
        ],
        workers=[(worker, worker_state(worker)) for worker in list_heartbeats()],
        waiting=count_inbox_reports(),
        waiting_here=count_inbox_reports_up_to(project.pk, read_waiting_limit(project.settings)),
        quota=read_quota(project.settings),
        bars=bars,
        taken=taken,
        taken_bytes=taken_bytes,
        refused=_count_refusals(project),
        poison=list(
            for_project(PoisonReport, project)
            .defer("identity", "report")
            .order_by("-id")[:MAX_LISTED]
        ),
        poison_here=here,
        poison_elsewhere=elsewhere,
        processes=_processes(project),
        helpers=sorted(count_recent_helpers(project_id=project.pk).items()),
        losses=_losses(project),
        deliveries=count_deliveries_by_state(project),
        oldest_delivery=waiting.aggregate(oldest=Min("created_at"))["oldest"],
        channels_off=list(
            for_project(Channel, project).filter(enabled=False).order_by("name", "pk")[:MAX_LISTED]
        ),
        stands_on=_list_runtime_versions(),
        database_size=_database_size(),
        storage=[
            (one, GOAL_BYTES_A_DAY[one.of])
            for one in StorageMeasure.objects.order_by("of")
            if one.of in GOAL_BYTES_A_DAY
        ],
        over=[
            (one, limits[one.kind], LIMIT_PERIODS[one.kind]) for one in over if one.kind in limits
        ],
        saturated=next((one for one in over if one.kind == COUNTER), None),
    )


def _bars(project: Project) -> tuple[list[HourBar], int, int]:
    intake = read_intake_by_hour(project=project, hours=HISTORY_HOURS)
    refused: dict[int, int] = {}
    for hour, _, count in list_refusals_by_hour(project=project, hours=HISTORY_HOURS):
        refused[hour] = refused.get(hour, 0) + count
    now = int(clock.unix() // 3600)
    hours = range(now - HISTORY_HOURS + 1, now + 1)
    most = (
        max((intake.get(hour, (0, 0))[0] + refused.get(hour, 0) for hour in hours), default=0) or 1
    )
    bars = []
    for place, hour in enumerate(hours):
        taken, bad = intake.get(hour, (0, 0))[0], refused.get(hour, 0)
        bars.append(
            HourBar(
                clock.at(hour * 3600),
                taken,
                bad,
                place * (BAR_WIDTH + BAR_GAP),
                round(CHART_HEIGHT * taken / most, 1),
                round(CHART_HEIGHT * bad / most, 1),
            )
        )
    return (
        bars,
        sum(reports for reports, _ in intake.values()),
        sum(size for _, size in intake.values()),
    )


def _count_refusals(project: Project) -> list[tuple[str, str, int, int]]:
    """Code, meaning, and counts of this hour and of the last day, most frequent first."""
    meanings: dict[str, Any] = {code: meaning for code, (_, meaning) in ERROR_CODES.items()} | dict(
        REJECTED_CODES
    )
    now, day, hour = int(clock.unix() // 3600), dict[str, int](), dict[str, int]()
    for at, code, count in list_refusals_by_hour(project=project, hours=HISTORY_HOURS):
        day[code] = day.get(code, 0) + count
        hour[code] = hour.get(code, 0) + (count if at == now else 0)
    return [
        (code, meanings.get(code, ""), hour[code], count)
        for code, count in sorted(day.items(), key=lambda item: -item[1])
    ]


def _processes(project: Project) -> list[tuple[InstanceState, int]]:
    now = clock.now()
    states = Counter(
        instance_state(one, now) for one in list_recent_instances(project_id=project.pk)
    )
    return [(state, states[state]) for state in SEVERITY if states[state]]


def _losses(project: Project) -> list[tuple[Instance, list[tuple[str, int]]]]:
    """Instances that reported losses, newest first."""
    newest = for_project(Sender, project).filter(missing__gt=0).order_by("-last_seen_at")
    missing = dict(newest.values_list("instance_id", "missing")[:MAX_LISTED])
    lost = Q(instance_id__in=missing)
    for name in LOSSES:
        if name != "missing":
            lost |= Q(**{f"{name}__gt": 0})
    rows = for_project(Instance, project).filter(lost).select_related("model", "version")
    found: list[tuple[Instance, list[tuple[str, int]]]] = []
    for one in rows.order_by("-last_seen_at")[:MAX_LISTED]:
        counts = {
            name: missing.get(one.instance_id, 0) if name == "missing" else getattr(one, name)
            for name in LOSSES
        }
        found.append((one, [(LOSSES[name], count) for name, count in counts.items() if count]))
    return found


def _list_runtime_versions() -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SHOW server_version"
            if connection.vendor == "postgresql"
            else "SELECT sqlite_version()"
        )
        [version] = cursor.fetchone()
    engine = "PostgreSQL" if connection.vendor == "postgresql" else "SQLite"
    mode = (
        "embedded: one process runs all parts"
        if settings.EMBEDDED
        else "full: separate web and worker"
    )
    return [
        ("compilewatch", __version__),
        ("Mode", mode),
        (engine, str(version).split(" ")[0]),
        ("Python", platform.python_version()),
        ("Django", django.get_version()),
    ]


def _database_size() -> int | None:
    sql = "SELECT pg_database_size(current_database())"
    if connection.vendor == "sqlite":
        sql = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    with connection.cursor() as cursor:
        cursor.execute(sql)
        [size] = cursor.fetchone()
    return int(size)
