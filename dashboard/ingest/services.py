"""Services of ingest: write senders and their ranges, inbox rows, and counts of intake and
refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from compilewatch.wire.ack import Rejected
from django.db import connection

from dashboard.common import clock
from dashboard.common.counters import totals_add
from dashboard.common.failpoints import crash_point
from dashboard.common.write_lock import write_transaction
from dashboard.ingest import sql
from dashboard.ingest.batch import Batch, ReportItem, StoreResult
from dashboard.ingest.intake_counters import IntakeCounts
from dashboard.ingest.sequence_ranges import COVERED, NEW, Coverage

_REJECTION_TEXTS = {
    "partial_overlap": "seq: overlaps a range that is already acknowledged",
    "gap_closed": "seq: lies in a gap that was closed",
    "range_conflict": "seq: another report is stored under this range; a second process has the "
    "same instance id",
    "too_old": "window: ended more than 7 days ago",
}
_COUNT_REFUSALS = (
    "INSERT INTO ingest_refusal (project_id, hour, code, count) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (project_id, hour, code) DO UPDATE SET count = ingest_refusal.count + "
    "excluded.count"
)
_COUNT_INTAKE = (
    "INSERT INTO ingest_intake (project_id, hour, reports, bytes) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (project_id, hour)"
    " DO UPDATE SET reports = ingest_intake.reports + excluded.reports, bytes = "
    "ingest_intake.bytes + excluded.bytes"
)


def reports_append(batches: Sequence[Batch]) -> list[StoreResult | None]:
    """Stores, in one statement, the batches that continue or begin their sender's newest range.
    Returns None for batches that need `reports_store`.

    Nearly all reports arrive in order. The database checks the order in the statement, so no row is
    read first. PostgreSQL only: SQLite has no round trips to save.
    """
    results: list[StoreResult | None] = [None] * len(batches)
    if connection.vendor != "postgresql":
        return results
    candidates: dict[sql.SenderKey, int] = {}
    for place, batch in enumerate(batches):
        if batch.is_continuous:
            candidates.setdefault((batch.project_id, batch.instance_id), place)
    if candidates:
        for key, ranges in sql.batches_append(
            [batches[place] for place in candidates.values()], now=clock.now()
        ):
            place = candidates[key]
            batch, coverage = batches[place], Coverage.of(ranges, [], 0)
            results[place] = StoreResult(
                [item.seq for item in batch.items], coverage.next_seq, batch.rejected, coverage.held
            )
            crash_point("web_committed")
    return results


def reports_store(batches: Sequence[Batch]) -> list[StoreResult]:
    """Stores the batches in one transaction. On return, every acknowledged report survives any
    crash."""
    if not batches:
        return []
    now = clock.now()
    with write_transaction(), connection.cursor() as cursor:
        sql.require_durability(cursor)
        keys = [(batch.project_id, batch.instance_id) for batch in batches]
        worth_a_row = [
            key
            for key, batch in zip(keys, batches, strict=True)
            if any(not item.too_old for item in batch.items)
        ]
        coverages = sql.senders_lock(cursor, keys, worth_a_row, now)
        results, fresh = [], list[tuple[Batch, ReportItem]]()
        for key, batch in zip(keys, batches, strict=True):
            stored, new = _add_to_coverage(batch, coverages.get(key) or Coverage())
            results.append(stored)
            fresh.extend((batch, item) for item in new)
        states = {
            key: (coverages[key], batch)
            for key, batch in zip(keys, batches, strict=True)
            if key in coverages
        }
        sql.inbox_write(cursor, fresh)
        crash_point("web_inserted")
        sql.senders_write(cursor, states)
        crash_point("web_before_commit")
    crash_point("web_committed")
    return results


def _add_to_coverage(batch: Batch, coverage: Coverage) -> tuple[StoreResult, list[ReportItem]]:
    stored, new = StoreResult(acked=[], next_seq=1, rejected=list(batch.rejected)), []
    for item in batch.items:
        place = (
            "too_old"
            if item.too_old and coverage.place(item.seq) == NEW
            else coverage.take(item.recorded)
        )
        if place == NEW:
            new.append(item)
        if place in (NEW, COVERED):
            stored.acked.append(item.seq)
        else:
            stored.rejected.append(Rejected(item.seq, place, _REJECTION_TEXTS[place]))
    stored.next_seq, stored.held = coverage.next_seq, coverage.held
    return stored, new


def refusals_write(counts: Mapping[tuple[int, int, str], int]) -> None:
    """Adds counts of refusals by project, hour and code."""
    by_code = Counter[tuple[str, str]]()
    for (_, _, code), count in counts.items():
        by_code["refused", code] += count
    with write_transaction(), connection.cursor() as cursor:
        for (project_id, hour, code), count in sorted(counts.items()):
            cursor.execute(_COUNT_REFUSALS, [project_id, hour, code, count])
        totals_add(by_code)


def intake_write(taken: IntakeCounts) -> None:
    """Adds counts of acknowledged reports and bytes, by project and hour and in total."""
    sums = {
        ("accepted", "reports"): taken.reports.total(),
        ("accepted", "bytes"): taken.bytes.total(),
        ("commits", ""): taken.commits,
        ("commit_seconds", ""): taken.commit_seconds,
    }
    with write_transaction(), connection.cursor() as cursor:
        for key in sorted(taken.reports):
            cursor.execute(_COUNT_INTAKE, [*key, taken.reports[key], taken.bytes[key]])
        totals_add(sums)
