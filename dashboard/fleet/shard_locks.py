"""Shard locks: one worker per shard, so that sketches are read, merged and written without lost
updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from django.db import DatabaseError, connection

_LOCK_CLASS = 0x43574653
"""Separates these advisory locks from others in the same database."""

_SQLITE_FOLD_LOCK = Lock()


class ClaimLost(Exception):
    """Error: another worker has the shard, so this fold must not commit."""


@contextmanager
def shards_claim(shards: Sequence[int]) -> Iterator[list[int]]:
    """Claim shards; yield those claimed.

    PostgreSQL holds a claim across transactions and releases it with the connection.
    """
    if connection.vendor != "postgresql":
        mine = _SQLITE_FOLD_LOCK.acquire(blocking=False)
        try:
            yield list(shards) if mine else []
        finally:
            if mine:
                _SQLITE_FOLD_LOCK.release()
        return
    claimed = _call_lock_function("pg_try_advisory_lock", shards)
    try:
        yield claimed
    finally:
        _release(claimed)


def claims_confirm(shards: Sequence[int]) -> None:
    """Confirm the claims within the fold's transaction.

    Takes the locks again as transaction locks. Raises ClaimLost if the connection with the claims
    was lost.
    """
    if connection.vendor == "postgresql" and len(
        _call_lock_function("pg_try_advisory_xact_lock", shards)
    ) < len(shards):
        raise ClaimLost(
            f"another worker is folding one of the shards {', '.join(map(str, shards))}"
        )


def _call_lock_function(function: str, shards: Sequence[int]) -> list[int]:
    """Return the shards for which the lock function succeeds."""
    if not shards:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT shard, {function}(%s, shard) FROM unnest(%s::integer[]) AS wanted(shard)",
            [_LOCK_CLASS, list(shards)],
        )
        return [shard for shard, said in cursor.fetchall() if said]


def _release(shards: Sequence[int]) -> None:
    try:
        _call_lock_function("pg_advisory_unlock", shards)
    except DatabaseError:
        connection.close()
