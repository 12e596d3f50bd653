"""Run minutes: runs of a model's versions, and the first minutes of some of them.

A run is a process, or the ranks of a job whose lives overlap. A job that is restarted under its
name is several runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from django.db.models import F, Q
from django.db.models.functions import Greatest

from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import Instance, RegionMinute
from dashboard.fleet.selectors.instances.role_filters import where_counted
from dashboard.fleet.selectors.judge_inputs.execution_modes import ModeChanges
from dashboard.fleet.selectors.judge_inputs.independent_units import JudgedProcess
from dashboard.fleet.selectors.judge_inputs.judge_minutes import (
    MINUTE_COLUMNS,
    Arm,
    JudgedMinute,
    find_modes_without_errors,
    make_minute,
    read_series,
)
from dashboard.projects.selectors import for_project

RANKS_PER_RUN = 4
"""Ranks of a job that are read. Ranks run in lockstep, so more of them add little."""
ENDED_AFTER_MINUTES = 5
"""Minutes without data after which a process without an announced end counts as ended."""
RUNS_PER_QUERY = 10
_COLUMNS = (
    "id",
    "instance_id",
    "version_id",
    "job",
    "world_size",
    "kind",
    "host",
    "gpu",
    "since",
    "last_minute",
    "announced",
)


class StoredRun(NamedTuple):
    """One run. `processes` are its processes by Instance.id; `unit` is its unique name."""

    unit: str
    version_id: int
    kind: str
    host: str
    first_minute: int
    last_minute: int
    ended: bool
    processes: dict[int, JudgedProcess]

    @property
    def minutes(self) -> int:
        """Length so far."""
        return self.last_minute - self.first_minute + 1


def list_runs(
    *,
    project_id: int,
    version_ids: Collection[int],
    environment: str,
    from_minute: int,
    now_minute: int,
    limit: int,
) -> list[StoredRun]:
    """Return the newest runs of these versions that had data since `from_minute`, newest first, of
    at most `limit` processes; one query."""
    rows = Instance.objects.filter(
        where_counted(),
        project_id=project_id,
        version_id__in=list(version_ids),
        environment=environment,
        last_minute__gte=from_minute,
    ).exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
    rows = rows.annotate(
        since=Greatest("active_minute", "first_minute"),
        announced=Q(ended_at__isnull=False, ended_at__gte=F("last_seen_at")),
    )
    values = rows.order_by("-first_minute", "instance_id").values_list(*_COLUMNS)[:limit]
    found = [_make_run(row[1], [row], now_minute) for row in values if not (row[4] > 1 and row[3])]
    for (version_id, job), ranks in _group_by_job(values).items():
        for number, part in enumerate(_split_restarts(ranks)):
            found.append(_make_run(f"job {job} {version_id} {number}", part, now_minute))
    return sorted(found, key=lambda run: (-run.first_minute, run.unit))


Row = tuple[int, str, int, str, int, str, str, str, int, int, bool]


def _group_by_job(rows: Iterable[Row]) -> dict[tuple[int, str], list[Row]]:
    jobs: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        if row[4] > 1 and row[3]:
            jobs.setdefault((row[2], row[3]), []).append(row)
    return jobs


def _split_restarts(ranks: list[Row]) -> list[list[Row]]:
    """Return the ranks in groups whose lives overlap, in order."""
    found: list[list[Row]] = []
    last = -1
    for row in sorted(ranks, key=lambda row: (row[8], row[1])):
        if not found or row[8] > last:
            found.append([])
        found[-1].append(row)
        last = max(last, row[9])
    return found


def _make_run(unit: str, rows: Sequence[Row], now_minute: int) -> StoredRun:
    kept = sorted(rows, key=lambda row: row[1])[:RANKS_PER_RUN]
    first, last = min(row[8] for row in rows), max(row[9] for row in rows)
    ended = all(row[10] for row in rows) or last < now_minute - ENDED_AFTER_MINUTES
    host = min(row[6] for row in rows)
    processes = {
        row[0]: JudgedProcess(row[1], unit, host, row[7], row[4], row[8], row[9]) for row in kept
    }
    version_id, kind = rows[0][2], rows[0][5]
    return StoredRun(
        unit, version_id, kind, host, first, last, ended and last < now_minute, processes
    )


def read_run_minutes(
    *,
    project_id: int,
    environment: str,
    runs: Sequence[tuple[Arm, StoredRun]],
    minutes: int,
    now_minute: int,
    changed: ModeChanges | None = None,
) -> list[JudgedMinute]:
    """Return the first `minutes` minutes of each run that are closed at `now_minute`, ordered by
    minute and instance. A query reads up to RUNS_PER_QUERY runs."""
    arms: tuple[Arm, ...] = ("baseline", "candidate")
    series = {
        arm: read_series(
            arm, {run.version_id for side, run in runs if side == arm}, environment, changed or {}
        )
        for arm in arms
    }
    untold = find_modes_without_errors(series.values())
    places = series["baseline"] | series["candidate"]
    found: list[JudgedMinute] = []
    for at in range(0, len(runs), RUNS_PER_QUERY):
        part = [run for _, run in runs[at : at + RUNS_PER_QUERY]]
        who = {id: process for run in part for id, process in run.processes.items()}
        rows = for_project(RegionMinute, project_id).filter(
            _where_in_runs(part, minutes, now_minute),
            day__in=sorted({day for run in part for day in _list_days(run, minutes)}),
            instance_id__in=list(who),
        )
        found += [
            make_minute(row, who[row[0]], places[row[1]], untold)
            for row in rows.values_list(*MINUTE_COLUMNS)
            if row[1] in places
        ]
    found.sort(key=lambda row: (row.minute, row.instance, row.stratum, row.region, row.bucket))
    return found


def _list_days(run: StoredRun, minutes: int) -> range:
    last = min(run.first_minute + minutes - 1, run.last_minute)
    return range(run.first_minute // 1440, last // 1440 + 1)


def _where_in_runs(runs: Iterable[StoredRun], minutes: int, now_minute: int) -> Q:
    where = Q()
    for run in runs:
        start = run.first_minute
        end = min(start + minutes, run.last_minute + 1, now_minute)
        where |= Q(
            instance_id__in=list(run.processes),
            minute__gte=start,
            minute__lt=end,
        )
    return where
