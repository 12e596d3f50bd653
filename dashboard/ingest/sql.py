"""SQL that makes batches durable: locks sender rows, extends ranges and inserts inbox rows. The
same SQL runs on both databases, except for the append."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from threading import local
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from dashboard.common.binary_cursor import open_binary_cursor
from dashboard.ingest.batch import Batch, ReportItem
from dashboard.ingest.recent_digests import MAX_RECENT_BYTES, pack_recent, unpack_recent
from dashboard.ingest.sequence_ranges import Coverage

SenderKey = tuple[int, str]

_SENDER_COLUMNS = (
    "project_id, instance_id, ranges, closed, missing, recent, clock_offset, first_seen_at, "
    "last_seen_at"
)
_INBOX_COLUMNS = (
    "project_id, shard, instance_id, seq_first, seq_last, received_at, clock_offset, identity, "
    "report"
)
_UPSERT = (
    " ON CONFLICT (project_id, instance_id) DO UPDATE SET ranges = excluded.ranges, closed "
    "= excluded.closed, missing = excluded.missing,"
    " recent = excluded.recent, clock_offset = excluded.clock_offset, last_seen_at = "
    "excluded.last_seen_at"
)


_APPEND_SQL = f"""
WITH given AS (
  SELECT * FROM unnest(
    %b::bigint[], %b::text[], %b::bigint[], %b::bigint[], %b::bytea[], %b::float8[])
    AS g(project_id, instance_id, first, last, recent, clock_offset)
), taken AS (
  INSERT INTO ingest_sender AS known (project_id, instance_id, ranges, closed, missing,
    recent, clock_offset, first_seen_at, last_seen_at)
  SELECT project_id, instance_id, jsonb_build_array(jsonb_build_array(first, last)), '[]', 0,
    recent, clock_offset, %b, %b FROM given
  ORDER BY project_id, instance_id
  ON CONFLICT (project_id, instance_id) DO UPDATE SET
    ranges = jsonb_set(known.ranges, '{{-1,1}}', excluded.ranges -> 0 -> 1),
    recent = substring(coalesce(known.recent, '') || excluded.recent from greatest(1,
      length(coalesce(known.recent, '')) + length(excluded.recent) - {MAX_RECENT_BYTES - 1})),
    clock_offset = excluded.clock_offset, last_seen_at = excluded.last_seen_at
  WHERE (known.ranges -> -1 ->> 1)::bigint = (excluded.ranges -> 0 ->> 0)::bigint - 1
  RETURNING project_id, instance_id, ranges
), stored AS (
  INSERT INTO ingest_inbox (project_id, shard, instance_id, seq_first, seq_last,
    received_at, clock_offset, identity, report)
  SELECT project_id, shard, instance_id, first, last, %b, clock_offset, identity, report
  FROM unnest(%b::bigint[], %b::smallint[], %b::text[], %b::bigint[], %b::bigint[],
    %b::float8[], %b::bytea[], %b::bytea[])
    AS r(project_id, shard, instance_id, first, last, clock_offset, identity, report)
  JOIN taken USING (project_id, instance_id)
)
SELECT project_id, instance_id, ranges FROM taken"""

PREPARE_NEVER = 1 << 30
"""Executions after which psycopg prepares a statement that did not request it."""

_session = local()


def batches_append(
    batches: Sequence[Batch], *, now: datetime
) -> list[tuple[SenderKey, list[list[int]]]]:
    """Stores the batches that continue their sender's newest range or have a new sender. Returns
    their senders and ranges.

    Each sender may occur once. PostgreSQL only, and outside any transaction: it is one statement.
    """
    senders, rows = _build_append_columns(batches)
    with open_binary_cursor() as cursor:
        _prepare_session(cursor)
        cursor.execute(_APPEND_SQL, [*senders, now, now, now, *rows], prepare=True)
        return [
            ((project_id, instance_id), json.loads(ranges))
            for project_id, instance_id, ranges in cursor.fetchall()
        ]


def _build_append_columns(
    batches: Sequence[Batch],
) -> tuple[list[list[Any]], list[list[Any]]]:
    """The columns of the senders and of the reports, in the order of the statement's arrays."""
    senders = zip(
        *(
            (
                b.project_id,
                b.instance_id,
                b.items[0].seq[0],
                b.items[-1].seq[1],
                pack_recent(item.recorded for item in b.items),
                b.clock_offset,
            )
            for b in batches
        ),
        strict=True,
    )
    rows = zip(
        *(
            (
                b.project_id,
                b.shard,
                b.instance_id,
                item.seq[0],
                item.seq[1],
                b.clock_offset,
                b.identity,
                item.text,
            )
            for b in batches
            for item in b.items
        ),
        strict=True,
    )
    return [*map(list, senders)], [*map(list, rows)]


def _prepare_session(cursor: Any) -> None:
    """Sets the options of a new connection once."""
    if getattr(_session, "prepared", None) is not connection.connection:
        cursor.execute(
            "SET synchronous_commit = on; SET lock_timeout = '2s'; SET statement_timeout = '10s'"
        )
        # Django leaves the threshold at None, and psycopg then prepares nothing, even on
        # request.
        connection.connection.prepare_threshold = PREPARE_NEVER
        _session.prepared = connection.connection


def require_durability(cursor: CursorWrapper) -> None:
    """Makes the commit of this transaction survive a crash under any default of the server. A
    blocked table fails within seconds."""
    if connection.vendor == "postgresql":
        cursor.execute(
            "SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '2s'; SET LOCAL "
            "statement_timeout = '10s'"
        )


def senders_lock(
    cursor: CursorWrapper, keys: Sequence[SenderKey], unknown: Sequence[SenderKey], now: datetime
) -> dict[SenderKey, Coverage]:
    """Durable coverage of each sender, with its row locked until the end of the transaction.
    Senders in `unknown` get a row if they have none."""
    found = _select_senders(cursor, sorted(set(keys)))
    made = sorted(set(unknown) - set(found))
    if made:
        rows = [(*key, "[]", "[]", 0, b"", 0.0, now, now) for key in made]
        _insert(
            cursor,
            "ingest_sender",
            _SENDER_COLUMNS,
            rows,
            " ON CONFLICT (project_id, instance_id) DO NOTHING",
        )
        found |= _select_senders(cursor, made)
    return found


def senders_write(cursor: CursorWrapper, states: dict[SenderKey, tuple[Coverage, Batch]]) -> None:
    """Writes the new coverage of senders whose rows are locked."""
    rows = []
    for key in sorted(states):
        coverage, batch = states[key]
        seen = _to_datetime(batch.received)
        ranges, closed = json.dumps(coverage.ranges), json.dumps(coverage.closed)
        rows.append(
            (
                *key,
                ranges,
                closed,
                coverage.missing,
                pack_recent(coverage.recent),
                batch.clock_offset,
                seen,
                seen,
            )
        )
    _insert(cursor, "ingest_sender", _SENDER_COLUMNS, rows, _UPSERT)


def inbox_write(cursor: CursorWrapper, items: Sequence[tuple[Batch, ReportItem]]) -> None:
    """Adds the reports to their shards of the inbox."""
    # SQLite has one folder: with one shard, the fixed cost of a fold is paid once.
    one_line = connection.vendor != "postgresql"
    rows = [
        (
            batch.project_id,
            0 if one_line else batch.shard,
            batch.instance_id,
            item.seq[0],
            item.seq[1],
            _to_datetime(batch.received),
            batch.clock_offset,
            batch.identity,
            item.text,
        )
        for batch, item in items
    ]
    _insert(cursor, "ingest_inbox", _INBOX_COLUMNS, rows)


def _select_senders(cursor: CursorWrapper, keys: Sequence[SenderKey]) -> dict[SenderKey, Coverage]:
    places = ", ".join(["(%s, %s)"] * len(keys))
    lock = (
        " ORDER BY project_id, instance_id FOR UPDATE" if connection.vendor == "postgresql" else ""
    )
    cursor.execute(
        "SELECT project_id, instance_id, ranges, closed, missing, recent FROM ingest_sender"
        f" WHERE (project_id, instance_id) IN (VALUES {places}){lock}",
        [value for key in keys for value in key],
    )
    return {
        (row[0], row[1]): Coverage.of(
            json.loads(row[2]), json.loads(row[3]), row[4], unpack_recent(row[5])
        )
        for row in cursor.fetchall()
    }


def _insert(
    cursor: CursorWrapper,
    table: str,
    columns: str,
    rows: Sequence[tuple[Any, ...]],
    ending: str = "",
) -> None:
    if not rows:
        return
    places = ", ".join(["(" + ", ".join(["%s"] * len(rows[0])) + ")"] * len(rows))
    cursor.execute(f"INSERT INTO {table} ({columns}) VALUES {places}{ending}", _flatten(rows))


def _flatten(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    return [value for row in rows for value in row]


def _to_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
