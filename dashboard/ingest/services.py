"""Writes what ingest owns: senders and their ranges, inbox rows, counts of refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compilewatch.wire.ack import Rejected
from compilewatch.wire.report import SeqRange
from django.db import connection

from dashboard.common import clock
from dashboard.common.locks import write_transaction
from dashboard.ingest import store
from dashboard.ingest.batch import Batch, Item
from dashboard.ingest.ranges import COVERED, NEW, Coverage

_REJECTED = {
    "partial_overlap": "seq: it overlaps a range that is already acknowledged",
    "gap_closed": "seq: it lies in a gap that was closed",
    "too_old": "window: it ended more than 7 days ago",
}
_COUNT_REFUSALS = (
    "INSERT INTO ingest_refusal (project_id, hour, code, count) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (project_id, hour, code) DO UPDATE SET count = ingest_refusal.count + excluded.count"
)


class Stored:
    """What became of a batch, once it is durable."""

    __slots__ = ("acked", "next_seq", "rejected")

    def __init__(self, batch: Batch) -> None:
        self.acked: list[SeqRange] = []
        self.rejected = list(batch.rejected)
        self.next_seq = 1


def reports_store(batches: Sequence[Batch]) -> list[Stored]:
    """Stores the batches in one transaction; when it returns, what it acknowledges survives any crash."""
    if not batches:
        return []
    now = clock.now()
    with write_transaction(), connection.cursor() as cursor:
        store.be_durable(cursor)
        keys = [(batch.project_id, batch.instance_id) for batch in batches]
        worth_a_row = [key for key, batch in zip(keys, batches, strict=True) if any(not item.too_old for item in batch.items)]
        coverages = store.senders_lock(cursor, keys, worth_a_row, now)
        results, fresh = [], list[tuple[Batch, Item]]()
        for key, batch in zip(keys, batches, strict=True):
            stored, new = _take_in(batch, coverages.get(key) or Coverage())
            results.append(stored)
            fresh.extend((batch, item) for item in new)
        states = {key: (coverages[key], batch) for key, batch in zip(keys, batches, strict=True) if key in coverages}
        store.senders_write(cursor, states)
        store.inbox_write(cursor, fresh)
    return results


def _take_in(batch: Batch, coverage: Coverage) -> tuple[Stored, list[Item]]:
    stored, new = Stored(batch), []
    for item in batch.items:
        place = coverage.place(item.seq)
        if place == NEW and item.too_old:
            place = "too_old"
        if place == NEW:
            coverage.add(item.seq)
            new.append(item)
        if place in (NEW, COVERED):
            stored.acked.append(item.seq)
        else:
            stored.rejected.append(Rejected(item.seq, place, _REJECTED[place]))
    stored.next_seq = coverage.next_seq
    return stored, new


def refusals_write(counts: Mapping[tuple[int, int, str], int]) -> None:
    """Adds counts of refusals by project, hour and code."""
    with write_transaction(), connection.cursor() as cursor:
        for (project_id, hour, code), count in sorted(counts.items()):
            cursor.execute(_COUNT_REFUSALS, [project_id, hour, code, count])
