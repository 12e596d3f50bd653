"""Instance writer: new instances as whole rows, known ones by their changed columns."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Any

from dashboard.common import clock
from dashboard.fleet.fold.counters import COUNTER_MAX, smaller
from dashboard.fleet.fold.facts import Facts, InstanceFact
from dashboard.fleet.fold.keys import InstanceKey
from dashboard.fleet.fold.live_spans import MAX_AHEAD_MINUTES
from dashboard.fleet.models import CommandReceipt, Instance
from dashboard.fleet.writers.bulk_upsert import Row, Table, rows_insert, rows_read, rows_update
from dashboard.fleet.writers.dimension_ids import DimensionIds, to_datetime

LOSS_COLUMNS = (
    "merged_windows",
    "truncated_events",
    "spool_errors",
    "internal_errors",
    "rejected_windows",
)
COMPILING_COLUMNS = ("compiling_for", "compiling_frame", "compiling_usual")
EXIT_COLUMNS = ("ended_at", "exit_code", "exit_signal")
CALL_COLUMNS = ("calls_seq", "known_calls", "eager_calls")
MOVING_TABLE = Table(
    Instance,
    ("id",),
    (
        "id",
        "last_seq",
        "clock_offset",
        *COMPILING_COLUMNS,
        "first_minute",
        "active_minute",
        *EXIT_COLUMNS,
        "last_minute",
        "live_minute",
        "last_seen_at",
        "ready_at",
        "latched_eager",
        *CALL_COLUMNS,
        "late_windows",
        *LOSS_COLUMNS,
    ),
)


KEY_COLUMNS = ("project_id", "instance_id")
IDENTITY_COLUMNS = (
    "model_id",
    "version_id",
    "environment",
    "kind",
    "host",
    "node",
    "job",
    "rank",
    "world_size",
    "pid",
    "gpu",
    "torch",
    "agent",
    "label",
    "role",
    "simulated",
    "identity",
    "capabilities",
    "components",
    "started_at",
    "identity_digest",
)
NEW_TABLE = Table(
    Instance, KEY_COLUMNS, (*KEY_COLUMNS, *IDENTITY_COLUMNS, *MOVING_TABLE.columns[1:])
)
KNOWN_TABLE = Table(Instance, KEY_COLUMNS, (*KEY_COLUMNS, "identity_digest", *MOVING_TABLE.columns))
CHANGED_TABLE = Table(Instance, ("id",), ("id", *IDENTITY_COLUMNS))


def instances_store(facts: Facts, ids: DimensionIds, *, now_minute: int) -> None:
    """Write the instances of the facts and store their ids in `ids`.

    Values that add up are added to new rows and known rows alike.
    """
    known = _read_known(facts.instances)
    fresh = [key for key in facts.instances if key not in known]
    if fresh:
        made = rows_insert(
            NEW_TABLE,
            [_build_row(key, facts.instances[key], ids, now_minute) for key in fresh],
            returning=("id", *KEY_COLUMNS),
        )
        for id, project, instance in made:
            ids.instances[InstanceKey(project, instance)] = id
            ids.new_instances.add(id)
            ids.active[InstanceKey(project, instance)] = facts.instances[
                InstanceKey(project, instance)
            ].active
    # A new row contains all facts. If another worker inserted the row meanwhile, read and update
    # that row.
    known |= _read_known([key for key in fresh if key not in ids.instances])
    moved, changed = [], []
    for key, row in known.items():
        fact = facts.instances[key]
        ids.instances[key] = row["id"]
        _activity_note(ids, key, fact.active, row["active_minute"])
        if fact.seq > row["last_seq"] and fact.digest != row["identity_digest"]:
            changed.append((row["id"], *_identity_values(fact, ids)))
        if (updated := _merge_moving(row, fact, now_minute)) != _moving_values(row):
            moved.append(updated)
    rows_update(CHANGED_TABLE, changed)
    rows_update(MOVING_TABLE, moved)
    _receipts_store(facts, ids)


def _activity_note(
    ids: DimensionIds, key: InstanceKey, said: int | None, known: int | None
) -> None:
    """Store the first minute that counts, and whether it is earlier than the stored one."""
    ids.active[key] = smaller(said, known)
    if said is not None and (known is None or said < known):
        ids.woken[key] = (said, known)


def _receipts_store(facts: Facts, ids: DimensionIds) -> None:
    rows = [
        CommandReceipt(
            project_id=key.project,
            instance_id=ids.instances[key],
            at=to_datetime(at),
            state=state,
            command=command,
            **json.loads(rest),
        )
        for key, fact in facts.instances.items()
        for at, state, command, rest in sorted(fact.receipts)
    ]
    if rows:
        CommandReceipt.objects.bulk_create(rows, ignore_conflicts=True)


def _read_known(keys: Collection[InstanceKey]) -> dict[InstanceKey, dict[str, Any]]:
    """Return the rows of known instances."""
    rows = [
        dict(zip(KNOWN_TABLE.columns, row, strict=True))
        for row in rows_read(KNOWN_TABLE, keys, constants=1)
    ]
    for row in rows:
        if row["active_minute"] == 0:
            row["active_minute"] = row["first_minute"]
    return {InstanceKey(row["project_id"], row["instance_id"]): row for row in rows}


def _build_row(key: InstanceKey, fact: InstanceFact, ids: DimensionIds, now_minute: int) -> Row:
    """Return a row for NEW_TABLE."""
    return (
        *key,
        *_identity_values(fact, ids),
        fact.seq,
        fact.clock_offset,
        *fact.compiling,
        fact.first_minute,
        fact.active,
        *_exit_values(fact),
        fact.last_minute,
        max(now_minute, fact.last_minute),
        to_datetime(fact.last_seen),
        _to_datetime(fact.ready),
        _merge_eager_fallbacks([], fact),
        *fact.calls,
        fact.late_windows,
        *fact.losses,
    )


def _identity_values(fact: InstanceFact, ids: DimensionIds) -> Row:
    """Return the values of IDENTITY_COLUMNS."""
    columns = {
        **fact.identity,
        "model_id": ids.models[fact.source.version.project, fact.source.version.model],
        "version_id": ids.versions[fact.source.version],
        "environment": fact.source.environment,
        "started_at": to_datetime(fact.identity["started"]),
        "identity_digest": fact.digest,
    }
    return tuple(columns[name] for name in IDENTITY_COLUMNS)


def _moving_values(row: dict[str, Any]) -> Row:
    return tuple(row[column] for column in MOVING_TABLE.columns)


def _merge_moving(row: dict[str, Any], fact: InstanceFact, now_minute: int) -> Row:
    """Return the row merged with the fact, in the order of MOVING_TABLE's columns."""
    seen, latest = to_datetime(fact.last_seen), clock.at_minute(now_minute + MAX_AHEAD_MINUTES)
    newer = fact.seq > row["last_seq"]
    ready = _to_datetime(fact.ready)
    return (
        row["id"],
        max(fact.seq, row["last_seq"]),
        fact.clock_offset if newer else row["clock_offset"],
        *(fact.compiling if newer else (row[name] for name in COMPILING_COLUMNS)),
        min(fact.first_minute, row["first_minute"]),
        smaller(fact.active, row["active_minute"]),
        *(
            _exit_values(fact)
            if fact.ended is not None and _is_later(fact.ended[0], row["ended_at"])
            else (row[name] for name in EXIT_COLUMNS)
        ),
        max(fact.last_minute, row["last_minute"]),
        max(fact.last_minute, row["live_minute"]),
        # A time in the future, from a clock that was ahead, would hide a silence for hours.
        seen if row["last_seen_at"] > latest else max(seen, row["last_seen_at"]),
        min((at for at in (ready, row["ready_at"]) if at is not None), default=None),
        _merge_eager_fallbacks(row["latched_eager"], fact)
        if fact.latched
        else row["latched_eager"],
        *max(fact.calls, tuple(row[name] for name in CALL_COLUMNS)),
        min(row["late_windows"] + fact.late_windows, COUNTER_MAX),
        *(max(value, row[name]) for name, value in zip(LOSS_COLUMNS, fact.losses, strict=True)),
    )


def _exit_values(fact: InstanceFact) -> Row:
    """Return the values of EXIT_COLUMNS."""
    if fact.ended is None:
        return None, None, ""
    at, code, signal = fact.ended
    return to_datetime(at), None if code < 0 else code, signal


def _is_later(at: float, known: datetime | None) -> bool:
    return known is None or to_datetime(at) > known


def _to_datetime(seconds: float | None) -> datetime | None:
    return None if seconds is None else to_datetime(seconds)


def _merge_eager_fallbacks(known: list[dict[str, Any]], fact: InstanceFact) -> list[dict[str, Any]]:
    """Return each frame and cause once, with its earliest report, ordered by time."""
    found = {(entry["frame"], entry["cause"]): entry for entry in known}
    for (frame, cause), (at, details) in fact.latched.items():
        entry = found.get((frame, cause))
        if entry is None or at < entry["at"]:
            found[frame, cause] = {**json.loads(details), "frame": frame, "cause": cause, "at": at}
    return sorted(found.values(), key=lambda entry: (entry["at"], entry["frame"], entry["cause"]))
