"""Which rows a folder takes next, noted before it folds them: a note that stays behind names rows that stop a worker, and is bisected."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from dashboard.common import clock
from dashboard.common.locks import write_transaction
from dashboard.common.server_cursor import server_cursor
from dashboard.ingest.models import FoldAttempt, InboxRow

TRIES = 3


class Waiting(NamedTuple):
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


_COLUMNS = ", ".join(f"taken.{name}" for name in Waiting._fields)
_OLDEST = (
    f"SELECT {_COLUMNS} FROM ingest_inbox AS taken JOIN (SELECT found.id FROM unnest(%b::smallint[]) AS wanted(shard) CROSS JOIN LATERAL"
    " (SELECT id FROM ingest_inbox WHERE ingest_inbox.shard = wanted.shard ORDER BY id LIMIT %b) AS found"
    " ORDER BY id LIMIT %b) AS oldest ON taken.id = oldest.id ORDER BY taken.id"
)


def batch_size() -> int:
    """Reports a fold takes at once. SQLite has one writer, who must not keep the endpoint waiting."""
    return 2000 if connection.vendor == "postgresql" else 300


@dataclass(frozen=True)
class Begun:
    """A fold under way: its notes, one a shard, the rows it takes, and whether there is more to fold after it."""

    notes: list[FoldAttempt]
    rows: list[Waiting]
    more: bool

    @property
    def shards(self) -> list[int]:
        """The shards it takes rows of."""
        return [note.shard for note in self.notes]

    @property
    def alone(self) -> bool:
        """One report and nothing else: what goes wrong is its own doing."""
        return len(self.rows) == 1

    @property
    def attempts(self) -> int:
        """How often these rows were tried, this time included."""
        return max(note.attempts for note in self.notes)


def attempt_begin(*, shards: Sequence[int]) -> Begun | None:
    """Notes and returns the next rows of shards that this worker has claimed; None if none wait. What a fold left behind comes first."""
    for note in FoldAttempt.objects.filter(shard__in=shards).order_by("shard", "first_id"):
        rows = _rows(note)
        if rows:
            return _again(note, rows)
        with write_transaction():
            note.delete()
    most = batch_size()
    waiting = _oldest(shards, most)
    if not waiting:
        return None
    spans: dict[int, list[int]] = {}
    for row in waiting:
        spans.setdefault(row.shard, []).append(row.id)
    with write_transaction():
        notes = FoldAttempt.objects.bulk_create(
            [
                FoldAttempt(shard=shard, first_id=ids[0], last_id=ids[-1], started_at=clock.now(), attempts=1, worker=_worker())
                for shard, ids in spans.items()
            ]
        )
    return Begun(notes, waiting, more=len(waiting) == most)


def _again(note: FoldAttempt, rows: list[Waiting]) -> Begun:
    """Takes up what a fold left behind. What was tried in company goes on in halves; `attempts` is 0 for a half not tried yet."""
    with write_transaction():
        if note.attempts and len(rows) > 1:
            middle = len(rows) // 2
            FoldAttempt.objects.create(
                shard=note.shard, first_id=rows[middle].id, last_id=note.last_id, started_at=clock.now(), attempts=0, worker=""
            )
            rows = rows[:middle]
            note.last_id, note.attempts = rows[-1].id, 0
        note.attempts += 1
        note.started_at, note.worker = clock.now(), _worker()
        note.save()
    return Begun([note], rows, more=True)


def _rows(note: FoldAttempt) -> list[Waiting]:
    found = InboxRow.objects.filter(shard=note.shard, id__range=(note.first_id, note.last_id)).order_by("id")
    return [Waiting(*row) for row in found.values_list(*Waiting._fields)]


def _oldest(shards: Sequence[int], most: int) -> list[Waiting]:
    """The oldest rows of the shards: of each those that came first, however unevenly they fill."""
    if connection.vendor == "postgresql":
        with server_cursor() as cursor:
            cursor.execute(_OLDEST, [list(shards), most, most])
            return [Waiting(*row) for row in cursor.fetchall()]
    rows = InboxRow.objects.filter(shard__in=shards).order_by("id").values_list(*Waiting._fields)
    return [Waiting(*row) for row in rows[:most]]


def _worker() -> str:
    return f"{socket.gethostname()[:100]}:{os.getpid()}"
