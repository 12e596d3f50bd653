"""Folds what waits in the inbox, sets aside what cannot be folded, and ends deployments whose traffic is gone."""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Iterable

from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import F

from dashboard.common import clock
from dashboard.common.crash import crash_point
from dashboard.common.locks import write_transaction
from dashboard.fleet.attempts import TRIES, Begun, attempt_begin
from dashboard.fleet.claims import ClaimLost, claim_confirm, shard_claim
from dashboard.fleet.fold.decode import Row
from dashboard.fleet.fold.presence import GONE_AFTER
from dashboard.fleet.fold.reports import rows_fold
from dashboard.fleet.models import Deployment
from dashboard.fleet.partitions import partitions_make
from dashboard.fleet.store import facts_store
from dashboard.ingest.models import SHARDS, FoldAttempt, InboxRow, PoisonReport

logger = logging.getLogger(__name__)

MAX_FOLDS = 10
"""Batches of one shard before the others get their turn."""

_KEPT = ("project_id", "shard", "instance_id", "seq_first", "seq_last", "received_at", "clock_offset", "identity", "report")


def fold_all() -> int:
    """Folds until nothing is left that another worker is not at; returns how many reports left the inbox."""
    total = 0
    while folded := sum(fold_shard(shard=shard) for shard in _waiting_shards()):
        total += folded
    return total


def fold_shard(*, shard: int) -> int:
    """Folds the oldest batches of a shard; returns how many reports left the inbox, 0 also when another worker has the shard."""
    total = 0
    with shard_claim(shard) as mine:
        folds = 0
        while mine and folds < MAX_FOLDS and (begun := attempt_begin(shard=shard)) is not None:
            moved = _fold_or_step_aside(begun)
            folds += moved > 0
            total += moved
    return total


def _fold_or_step_aside(begun: Begun) -> int:
    """Folds the batch. A failure leaves the note behind, by which the batch is halved next time; a report that fails alone is set aside."""
    if begun.alone and begun.note.attempts > TRIES:
        return poison_set_aside(begun, f"The worker that folded it ended {TRIES} times.")
    crash_point("claimed")
    try:
        return _fold(begun)
    except (OperationalError, InterfaceError, ClaimLost):
        # The database's trouble, not the report's: nothing is held against it.
        with contextlib.suppress(DatabaseError):
            FoldAttempt.objects.filter(id=begun.note.id).update(attempts=F("attempts") - 1)
        raise
    except Exception as error:
        logger.warning("folding %d reports of shard %d failed: %s", len(begun.rows), begun.note.shard, error, exc_info=begun.alone)
        if begun.alone and begun.exhausted:
            return poison_set_aside(begun, f"{type(error).__name__}: {error}")
        return 0


def _fold(begun: Begun) -> int:
    """One batch, exactly once: its rows go in the transaction that counts them."""
    folded = rows_fold(Row(r.id, r.project_id, r.instance_id, r.clock_offset, bytes(r.identity), bytes(r.report)) for r in begun.rows)
    partitions_make(days=folded.facts.days())
    with write_transaction():
        claim_confirm(begun.note.shard)
        _look_up_by_key()
        _rows_delete(begun.rows)
        facts_store(folded.facts, now=clock.unix())
        _poison_create((row, folded.failed[row.id]) for row in begun.rows if row.id in folded.failed)
        crash_point("upserted")
        FoldAttempt.objects.filter(id=begun.note.id).delete()
        crash_point("before_commit")
    crash_point("committed")
    return len(begun.rows)


def poison_set_aside(begun: Begun, error: str) -> int:
    """Moves the batch's reports out of the line, with the error."""
    logger.error("setting aside %d reports of shard %d: %s", len(begun.rows), begun.note.shard, error)
    with write_transaction():
        claim_confirm(begun.note.shard)
        _rows_delete(begun.rows)
        _poison_create((row, error) for row in begun.rows)
        FoldAttempt.objects.filter(id=begun.note.id).delete()
    return len(begun.rows)


def poison_refold(*, ids: Iterable[int] | None = None) -> int:
    """Puts reports that were set aside back into the inbox, all or those with the ids; returns how many."""
    with write_transaction():
        found = PoisonReport.objects.select_for_update().order_by("id")
        rows = list(found if ids is None else found.filter(id__in=list(ids)))
        InboxRow.objects.bulk_create([InboxRow(**{name: getattr(row, name) for name in _KEPT}) for row in rows], batch_size=100)
        PoisonReport.objects.filter(id__in=[row.id for row in rows]).delete()
    return len(rows)


def deployments_update(*, now_minute: int) -> int:
    """Ends deployments without data for 30 minutes; the fold opens and lengthens them. Returns how many ended."""
    with write_transaction():
        gone = Deployment.objects.filter(ended_minute=None, last_minute__lt=now_minute - GONE_AFTER)
        return gone.update(ended_minute=F("last_minute"))


def _waiting_shards() -> list[int]:
    """Shards with reports, in random order, so that several workers do not queue for the same one."""
    numbers = ", ".join(f"({shard})" for shard in range(SHARDS))
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH shard(number) AS (VALUES {numbers}) SELECT number FROM shard"
            " WHERE EXISTS (SELECT 1 FROM ingest_inbox WHERE ingest_inbox.shard = shard.number)"
        )
        shards = [row[0] for row in cursor.fetchall()]
    random.shuffle(shards)
    return shards


def _look_up_by_key() -> None:
    """A fold finds rows by their whole key only; a planner without statistics may rather read whole partitions."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")


def _rows_delete(rows: list[InboxRow]) -> None:
    deleted, _ = InboxRow.objects.filter(id__in=[row.id for row in rows]).delete()
    if deleted != len(rows):
        raise ClaimLost(f"{len(rows) - deleted} of {len(rows)} reports were folded by another worker")


def _poison_create(rows: Iterable[tuple[InboxRow, str]]) -> None:
    PoisonReport.objects.bulk_create(
        [PoisonReport(**{name: getattr(row, name) for name in _KEPT}, set_aside_at=clock.now(), error=error[:2000]) for row, error in rows]
    )
