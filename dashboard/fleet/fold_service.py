"""Folds what waits in the inbox, sets aside what cannot be folded, and ends deployments whose
traffic is gone."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Collection, Iterable, Sequence

from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import F, QuerySet

from dashboard.common import clock
from dashboard.common.binary_cursor import open_binary_cursor
from dashboard.common.counters import measure_stage, totals_add
from dashboard.common.failpoints import crash_point
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.fold.decode import EncodedReport
from dashboard.fleet.fold.fold_report import rows_fold
from dashboard.fleet.fold.live_spans import GONE_AFTER_MINUTES
from dashboard.fleet.fold_attempts import (
    MAX_ATTEMPTS,
    MAX_RETRY_ROWS,
    FoldBatch,
    WaitingReport,
    begin_fresh_fold,
    begin_retry,
    list_failed_projects,
    list_failed_shards,
)
from dashboard.fleet.models import Deployment
from dashboard.fleet.partitions import list_partition_days, partitions_make
from dashboard.fleet.round_robin import iterate_turns
from dashboard.fleet.shard_locks import ClaimLost, claims_confirm, shards_claim
from dashboard.fleet.write_facts import facts_store
from dashboard.ingest.models import FoldAttempt, InboxRow, PoisonReport

logger = logging.getLogger(__name__)

RETRY_BUDGET_S = 0.25
"""How long folds that failed are tried again before fresh reports have their turn."""

_COPIED_FIELDS = (
    "project_id",
    "shard",
    "instance_id",
    "seq_first",
    "seq_last",
    "received_at",
    "clock_offset",
    "identity",
    "report",
)


@measure_stage("fold")
def fold_all(*, seconds: float = math.inf) -> int:
    """Folds what waits and is with no other worker, again while more waits than a batch holds;
    returns how many reports left the inbox.

    Fresh reports and folds that failed take turns, and the latter have little time in each: a
    project whose reports fail holds up no other. After so many seconds no further fold begins: the
    caller comes again."""
    total, again, stop = 0, True, time.monotonic() + seconds
    while again and time.monotonic() < stop:
        moved, left = 0, False
        for turn in iterate_turns():
            one, more = shards_fold(turn.shards, turn.projects)
            moved, left = moved + one, left or (more and one > 0)
            if time.monotonic() >= stop:
                break
        tried, back = retry_failed_folds(stop=min(stop, time.monotonic() + RETRY_BUDGET_S))
        total, again = total + moved + back, (left and moved > 0) or tried > 0
    return total


def shards_fold(shards: Sequence[int], projects: Collection[int]) -> tuple[int, bool]:
    """Folds the oldest batch of the projects in those shards that no other worker has; returns how
    many reports left the inbox, and whether more wait. Projects of which a fold failed there are
    left out: they have a turn of their own."""
    with shards_claim(shards) as mine:
        apart = set(list_failed_projects(mine)) if mine else set()
        begun = (
            begin_fresh_fold(shards=mine, projects=[one for one in projects if one not in apart])
            if mine
            else None
        )
        if begun is None:
            return 0, False
        moved = _fold_or_quarantine(begun)
        # What fails in company is folded project by project at once: all but one of them have done
        # nothing wrong.
        moved += 0 if moved else sum(map(_fold_or_quarantine, begun.split_by_project()))
        return moved, begun.more


def retry_failed_folds(*, stop: float) -> tuple[int, int]:
    """Tries again what folds left behind, project by project, and folds fresh reports of those
    projects in turn.

    Returns how many folds it tried and how many reports left the inbox. A fold that begins before
    `stop` ends."""
    tried = moved = 0
    with shards_claim(list_failed_shards()) as mine:
        while mine and (projects := list_failed_projects(mine)):
            for project in projects:
                fresh = (
                    None
                    if project is None
                    else begin_fresh_fold(shards=mine, projects=[project], most=MAX_RETRY_ROWS)
                )
                for begun in (fresh, begin_retry(shards=mine, project=project)):
                    if begun is not None:
                        tried, moved = tried + 1, moved + _fold_or_quarantine(begun)
                if time.monotonic() >= stop:
                    return tried, moved
    return tried, moved


def _fold_or_quarantine(begun: FoldBatch) -> int:
    """Folds the batch. A failure leaves the notes behind, by which it is halved next time; a report
    that fails alone is set aside."""
    if begun.alone and begun.attempts > MAX_ATTEMPTS:
        return quarantine_batch(begun, f"The worker that folded it ended {MAX_ATTEMPTS} times.")
    crash_point("claimed")
    try:
        return _fold(begun)
    except (OperationalError, InterfaceError, ClaimLost):
        # The database's trouble, not the report's: nothing is held against it.
        with contextlib.suppress(DatabaseError):
            _query_attempts(begun).update(attempts=F("attempts") - 1)
        raise
    except Exception as error:
        logger.warning(
            "folding %d reports of %s failed: %s",
            len(begun.rows),
            _describe_shards(begun),
            error,
            exc_info=begun.alone,
            extra=_log_ids(begun),
        )
        if begun.alone and begun.attempts >= MAX_ATTEMPTS:
            return quarantine_batch(begun, f"{type(error).__name__}: {error}")
        return 0


def _fold(begun: FoldBatch) -> int:
    """One batch, exactly once: its rows go in the transaction that counts them."""
    folded = rows_fold([_to_encoded_report(waiting) for waiting in begun.rows])
    partitions_make(
        days=folded.facts.days().intersection(list_partition_days(int(clock.unix() // 86400)))
    )
    with write_transaction():
        claims_confirm(begun.shards)
        _disable_seqscan()
        _rows_delete(begun.rows)
        facts_store(folded.facts, now=clock.unix())
        _poison_create(
            (row, folded.failed[row.id]) for row in begun.rows if row.id in folded.failed
        )
        crash_point("upserted")
        _query_attempts(begun).delete()
        crash_point("before_commit")
    crash_point("committed")
    _lag_add(begun.rows)
    return len(begun.rows)


def _to_encoded_report(one: WaitingReport) -> EncodedReport:
    received = one.received_at.timestamp()
    return EncodedReport(
        one.id,
        one.project_id,
        one.instance_id,
        one.clock_offset,
        bytes(one.identity),
        bytes(one.report),
        received,
    )


def quarantine_batch(begun: FoldBatch, error: str) -> int:
    """Moves the batch's reports out of the line, with the error."""
    logger.error(
        "setting aside %d reports of %s: %s",
        len(begun.rows),
        _describe_shards(begun),
        error,
        extra=_log_ids(begun),
    )
    with write_transaction():
        claims_confirm(begun.shards)
        _rows_delete(begun.rows)
        _poison_create((row, error) for row in begun.rows)
        _query_attempts(begun).delete()
    return len(begun.rows)


def _log_ids(begun: FoldBatch) -> dict[str, list[str]]:
    """The reports of the batch, as JSON log lines name them: instance and first sequence number."""
    return {"reports": [f"{row.instance_id}:{row.seq_first}" for row in begun.rows[:20]]}


def _lag_add(rows: Sequence[WaitingReport]) -> None:
    """How long the reports waited, for the metrics: after the fold, whose other folders would wait
    for this row."""
    now = clock.now()
    waited = sum((now - row.received_at).total_seconds() for row in rows)
    totals_add({("fold_lag", "seconds"): max(0.0, waited), ("fold_lag", "reports"): len(rows)})


def _query_attempts(begun: FoldBatch) -> QuerySet[FoldAttempt]:
    return FoldAttempt.objects.filter(id__in=[note.id for note in begun.notes])


def _describe_shards(begun: FoldBatch) -> str:
    return f"{'shard' if len(begun.notes) == 1 else 'shards'} {', '.join(map(str, begun.shards))}"


def poison_refold(*, ids: Iterable[int] | None = None) -> int:
    """Puts reports that were set aside back into the inbox, all or those with the ids; returns how
    many."""
    with write_transaction():
        found = PoisonReport.objects.select_for_update().order_by("id")
        rows = list(found if ids is None else found.filter(id__in=list(ids)))
        InboxRow.objects.bulk_create(
            [InboxRow(**{name: getattr(row, name) for name in _COPIED_FIELDS}) for row in rows],
            batch_size=100,
        )
        PoisonReport.objects.filter(id__in=[row.id for row in rows]).delete()
    return len(rows)


def end_stale_deployments(*, now_minute: int) -> int:
    """Ends deployments without data for 30 minutes; the fold opens and lengthens them. Returns how
    many ended."""
    with write_transaction():
        gone = Deployment.objects.filter(
            ended_minute=None, last_minute__lt=now_minute - GONE_AFTER_MINUTES
        )
        return gone.update(ended_minute=F("last_minute"))


def _disable_seqscan() -> None:
    """A fold finds rows by their whole key only; a planner without statistics may rather read whole
    partitions."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")


def _rows_delete(rows: Sequence[WaitingReport]) -> None:
    ids = [row.id for row in rows]
    if connection.vendor == "postgresql":
        with open_binary_cursor() as cursor:
            deleted = cursor.execute(
                "DELETE FROM ingest_inbox WHERE id = ANY(%b::bigint[])", [ids]
            ).rowcount
    else:
        deleted, _ = InboxRow.objects.filter(id__in=ids).delete()
    if deleted != len(rows):
        raise ClaimLost(
            f"{len(rows) - deleted} of {len(rows)} reports were folded by another worker"
        )


def _poison_create(rows: Iterable[tuple[WaitingReport, str]]) -> None:
    PoisonReport.objects.bulk_create(
        [
            PoisonReport(
                **{name: getattr(row, name) for name in _COPIED_FIELDS},
                set_aside_at=clock.now(),
                error=error[:2000],
            )
            for row, error in rows
        ]
    )
