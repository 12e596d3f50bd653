"""Which rows a folder takes next, noted before it folds them: a note that stays behind names rows that stop a worker, and is bisected."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from django.db import connection

from dashboard.common import clock
from dashboard.common.locks import write_transaction
from dashboard.ingest.models import FoldAttempt, InboxRow

TRIES = 3


def batch_size() -> int:
    """Reports a fold takes at once. SQLite has one writer, who must not keep the endpoint waiting."""
    return 2000 if connection.vendor == "postgresql" else 300


@dataclass(frozen=True)
class Begun:
    """A fold under way: its note and the rows it takes."""

    note: FoldAttempt
    rows: list[InboxRow]

    @property
    def alone(self) -> bool:
        """One report and nothing else: what goes wrong is its own doing."""
        return len(self.rows) == 1

    @property
    def exhausted(self) -> bool:
        """It has been tried often enough, this time included."""
        return self.note.attempts >= TRIES


def attempt_begin(*, shard: int) -> Begun | None:
    """Notes and returns the next rows of a shard that this worker has claimed; None if none wait."""
    while (note := FoldAttempt.objects.filter(shard=shard).order_by("first_id").first()) is not None:
        rows = list(InboxRow.objects.filter(shard=shard, id__range=(note.first_id, note.last_id)).order_by("id"))
        if rows:
            return _again(note, rows)
        with write_transaction():
            note.delete()
    rows = list(InboxRow.objects.filter(shard=shard).order_by("id")[: batch_size()])
    if not rows:
        return None
    with write_transaction():
        note = FoldAttempt.objects.create(
            shard=shard, first_id=rows[0].id, last_id=rows[-1].id, started_at=clock.now(), attempts=1, worker=_worker()
        )
    return Begun(note, rows)


def _again(note: FoldAttempt, rows: list[InboxRow]) -> Begun:
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
    return Begun(note, rows)


def _worker() -> str:
    return f"{socket.gethostname()[:100]}:{os.getpid()}"
