"""Fold service: folds the inbox, quarantines failing reports, and ends stale deployments."""

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
"""Maximum seconds of retries before new reports continue."""

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
    """Fold the inbox until at most a partial batch remains; return the number of reports that left
    it.

    Fresh folds and retries alternate, and retries have little time, so a failing project delays no
    other project. No fold starts after `seconds`; the caller schedules the next run.
    """
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
    """Fold the oldest batch of the projects in the shards that are not claimed elsewhere.

    Return the number of reports that left the inbox, and whether more wait. Projects with failed
    folds are excluded; `retry_failed_folds` handles those.
    """
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
        # A failed batch is folded again by project at once: the other projects did not cause the
        # failure.
        moved += 0 if moved else sum(map(_fold_or_quarantine, begun.split_by_project()))
        return moved, begun.more


def retry_failed_folds(*, stop: float) -> tuple[int, int]:
    """Retry failed folds project by project, alternating with fresh reports of these projects.

    Return the number of folds tried and of reports that left the inbox. A fold that starts before
    `stop` is completed.
    """
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
    """Fold the batch, and return the number of reports that left the inbox.

    A failure leaves the notes, and the next retry halves the batch. A report that fails alone is
    quarantined.
    """
    if begun.alone and begun.attempts > MAX_ATTEMPTS:
        return quarantine_batch(
            begun, f"The worker that folded this report ended {MAX_ATTEMPTS} times."
        )
    crash_point("claimed")
    try:
        return _fold(begun)
    except (OperationalError, InterfaceError, ClaimLost):
        # The database failed, not the report: the attempt does not count.
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
    """Fold one batch exactly once: its rows are deleted in the transaction that stores their
    facts."""
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
    """Move the batch's reports to quarantine, with the error."""
    logger.error(
        "quarantining %d reports of %s: %s",
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
    """Return the reports of the batch for JSON log lines, as instance and first sequence number."""
    return {"reports": [f"{row.instance_id}:{row.seq_first}" for row in begun.rows[:20]]}


def _lag_add(rows: Sequence[WaitingReport]) -> None:
    """Add the waiting time of the reports to the metrics.

    Runs after the fold's transaction, because other workers wait for the same counter row.
    """
    now = clock.now()
    waited = sum((now - row.received_at).total_seconds() for row in rows)
    totals_add({("fold_lag", "seconds"): max(0.0, waited), ("fold_lag", "reports"): len(rows)})


def _query_attempts(begun: FoldBatch) -> QuerySet[FoldAttempt]:
    return FoldAttempt.objects.filter(id__in=[note.id for note in begun.notes])


def _describe_shards(begun: FoldBatch) -> str:
    return f"{'shard' if len(begun.notes) == 1 else 'shards'} {', '.join(map(str, begun.shards))}"


def poison_refold(*, ids: Iterable[int] | None = None) -> int:
    """Put quarantined reports back into the inbox, all or those with `ids`; return their number."""
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
    """End deployments without data for GONE_AFTER_MINUTES; return their number.

    Folds open and extend deployments.
    """
    with write_transaction():
        gone = Deployment.objects.filter(
            ended_minute=None, last_minute__lt=now_minute - GONE_AFTER_MINUTES
        )
        return gone.update(ended_minute=F("last_minute"))


def _disable_seqscan() -> None:
    """Disable sequential scans: a fold finds rows by their full key.

    Without statistics, the planner may read whole partitions instead.
    """
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
