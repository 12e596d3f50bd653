"""Fold attempts: notes of the rows that a worker is about to fold.

A note that remains after a fold names rows that stop a worker. A retry halves the rows until the
failing report is alone. A note covers rows of one project, so failing reports of a project delay no
other project.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db import connection
from django.db.models import Max

from dashboard.common import clock
from dashboard.common.binary_cursor import open_binary_cursor
from dashboard.common.write_lock import write_transaction
from dashboard.ingest.models import FoldAttempt, InboxRow

MAX_ATTEMPTS = 3
MAX_RETRY_ROWS = 100
"""Maximum number of reports per retry of a failing project; other projects wait meanwhile."""


class WaitingReport(NamedTuple):
    """A report in the inbox."""

    id: int
    project_id: int
    shard: int
    instance_id: str
    seq_first: int
    seq_last: int
    received_at: datetime
    clock_offset: float
    identity: bytes
    report: bytes


_COLUMNS = ", ".join(f"taken.{name}" for name in WaitingReport._fields)
_HAS_ATTEMPT = (
    "EXISTS (SELECT 1 FROM ingest_fold_attempt AS note WHERE note.shard = {row}.shard"
    " AND (note.project_id = {row}.project_id OR note.project_id IS NULL) AND {row}.id "
    "BETWEEN note.first_id AND note.last_id)"
)
"""SQL condition: an earlier fold left a note that covers the row."""
_SELECT_OLDEST = (
    f"SELECT {_COLUMNS} FROM ingest_inbox AS taken JOIN (SELECT found.id FROM "
    "unnest(%b::smallint[]) AS wanted(shard)"
    " CROSS JOIN unnest(%b::bigint[]) AS whose(project_id) CROSS JOIN LATERAL (SELECT id "
    "FROM ingest_inbox AS one"
    " WHERE one.shard = wanted.shard AND one.project_id = whose.project_id AND NOT "
    + _HAS_ATTEMPT.format(row="one")
    + " ORDER BY id LIMIT %b)"
    " AS found ORDER BY id LIMIT %b) AS oldest ON taken.id = oldest.id ORDER BY taken.id"
)


def batch_size() -> int:
    """Return the maximum number of reports per fold.

    SQLite has a single writer, so a short fold keeps ingestion responsive.
    """
    return 2000 if connection.vendor == "postgresql" else 300


@dataclass(frozen=True)
class FoldBatch:
    """Fold in progress: one note per shard and project, its rows, and whether more rows wait."""

    notes: list[FoldAttempt]
    rows: list[WaitingReport]
    more: bool

    @property
    def shards(self) -> list[int]:
        """Return the shards of the rows."""
        return sorted({note.shard for note in self.notes})

    @property
    def alone(self) -> bool:
        """Whether the batch has a single report, which then causes any failure."""
        return len(self.rows) == 1

    @property
    def attempts(self) -> int:
        """Number of attempts, including the current one."""
        return max(note.attempts for note in self.notes)

    def split_by_project(self) -> list[FoldBatch]:
        """Split a failed fold by project; empty if it has one project only."""
        projects = sorted({row.project_id for row in self.rows})
        if len(projects) == 1:
            return []
        return [
            FoldBatch(
                [note for note in self.notes if note.project_id == project],
                [row for row in self.rows if row.project_id == project],
                True,
            )
            for project in projects
        ]


def begin_fresh_fold(
    *, shards: Sequence[int], projects: Collection[int], most: int | None = None
) -> FoldBatch | None:
    """Note and return the oldest rows of the projects in the claimed shards; None without rows.

    Rows under the note of an earlier fold are not included.
    """
    most = most or batch_size()
    waiting = _read_oldest(shards, projects, most)
    if not waiting:
        return None
    spans: dict[tuple[int, int], list[int]] = {}
    for row in waiting:
        spans.setdefault((row.shard, row.project_id), []).append(row.id)
    now, worker = clock.now(), _worker_name()
    with write_transaction():
        notes = FoldAttempt.objects.bulk_create(
            [
                FoldAttempt(
                    shard=shard,
                    project_id=project,
                    first_id=ids[0],
                    last_id=ids[-1],
                    started_at=now,
                    attempts=1,
                    worker=worker,
                )
                for (shard, project), ids in spans.items()
            ]
        )
    return FoldBatch(notes, waiting, more=len(waiting) == most)


def list_failed_shards() -> list[int]:
    """Return the shards with notes: the fold failed, its worker ended, or the fold is in
    progress."""
    return sorted(set(FoldAttempt.objects.values_list("shard", flat=True)))


def list_failed_projects(shards: Sequence[int]) -> list[int | None]:
    """Return the projects with notes in the claimed shards, the least recently tried first."""
    notes = (
        FoldAttempt.objects.filter(shard__in=shards)
        .values("project_id")
        .annotate(tried=Max("started_at"))
    )
    return [note["project_id"] for note in notes.order_by("tried", "project_id")]


def begin_retry(*, shards: Sequence[int], project: int | None) -> FoldBatch | None:
    """Start a retry of the oldest rows that a fold of the project left; None without such rows.

    Notes without remaining rows are deleted.
    """
    for note in FoldAttempt.objects.filter(shard__in=shards, project_id=project).order_by(
        "shard", "first_id"
    ):
        rows = _read_rows(note)
        if rows:
            return _resume(note, rows)
        with write_transaction():
            note.delete()
    return None


def _resume(note: FoldAttempt, rows: list[WaitingReport]) -> FoldBatch:
    """Resume rows that a fold left, a few reports at a time.

    A failed batch continues in halves; `attempts` is 0 for an untried part.
    """
    now = clock.now()
    with write_transaction():
        if (note.attempts and len(rows) > 1) or len(rows) > MAX_RETRY_ROWS:
            middle = min(len(rows) // 2, MAX_RETRY_ROWS)
            half = FoldAttempt(
                shard=note.shard,
                project_id=note.project_id,
                first_id=rows[middle].id,
                last_id=note.last_id,
                worker="",
            )
            half.started_at, half.attempts = now, 0
            half.save()
            rows = rows[:middle]
            note.last_id, note.attempts = rows[-1].id, 0
        note.attempts += 1
        note.started_at, note.worker = now, _worker_name()
        note.save()
    return FoldBatch([note], rows, more=True)


def _read_rows(note: FoldAttempt) -> list[WaitingReport]:
    found = InboxRow.objects.filter(
        shard=note.shard, id__range=(note.first_id, note.last_id)
    ).order_by("id")
    mine = found if note.project_id is None else found.filter(project_id=note.project_id)
    return [WaitingReport(*row) for row in mine.values_list(*WaitingReport._fields)]


def _read_oldest(
    shards: Sequence[int], projects: Collection[int], most: int
) -> list[WaitingReport]:
    """Return the oldest rows of the projects across all given shards, however unevenly filled."""
    if connection.vendor == "postgresql":
        with open_binary_cursor() as cursor:
            cursor.execute(_SELECT_OLDEST, [list(shards), list(projects), most, most])
            return [WaitingReport(*row) for row in cursor.fetchall()]
    rows = InboxRow.objects.filter(shard__in=shards, project_id__in=projects).extra(
        where=["NOT " + _HAS_ATTEMPT.format(row="ingest_inbox")]
    )
    return [
        WaitingReport(*row)
        for row in rows.order_by("id").values_list(*WaitingReport._fields)[:most]
    ]


def _worker_name() -> str:
    return f"{socket.gethostname()[:100]}:{os.getpid()}"
