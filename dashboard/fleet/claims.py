"""Who folds a shard: one folder at a time, so that sketches can be read, merged and written without losing one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from django.db import DatabaseError, connection

_LOCK_CLASS = 0x43574653
"""Tells these advisory locks from others in the same database."""

_SQLITE_FOLDER = Lock()


class ClaimLost(Exception):
    """Another folder has the shard, so nothing of this fold may be committed."""


@contextmanager
def shard_claim(shard: int) -> Iterator[bool]:
    """Whether the shard is ours. PostgreSQL keeps the claim across the fold's two transactions and drops it with a dead connection."""
    if connection.vendor != "postgresql":
        mine = _SQLITE_FOLDER.acquire(blocking=False)
        try:
            yield mine
        finally:
            if mine:
                _SQLITE_FOLDER.release()
        return
    mine = _ask("SELECT pg_try_advisory_lock(%s, %s)", shard)
    try:
        yield mine
    finally:
        if mine:
            _release(shard)


def claim_confirm(shard: int) -> None:
    """Inside the fold's transaction: takes the lock once more, which fails if the connection that claimed it is gone."""
    if connection.vendor == "postgresql" and not _ask("SELECT pg_try_advisory_xact_lock(%s, %s)", shard):
        raise ClaimLost(f"shard {shard} is being folded by another worker")


def _ask(statement: str, shard: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(statement, [_LOCK_CLASS, shard])
        return bool(cursor.fetchone()[0])


def _release(shard: int) -> None:
    try:
        _ask("SELECT pg_advisory_unlock(%s, %s)", shard)
    except DatabaseError:
        connection.close()
