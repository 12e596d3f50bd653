"""Instances to rows: new ones whole, known ones only what moves, and the identity when it changed."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from dashboard.fleet.fold.facts import Facts, InstanceFact
from dashboard.fleet.fold.keys import InstanceKey
from dashboard.fleet.models import Instance
from dashboard.fleet.stored.bulk import Row, Table, rows_update
from dashboard.fleet.stored.dimensions import Ids, moment

LOSSES = ("merged_windows", "truncated_events", "spool_errors", "internal_errors", "rejected_windows")
COMPILING = ("compiling_for", "compiling_frame", "compiling_usual")
CALLS = ("calls_seq", "known_calls", "eager_calls")
MOVING = Table(
    Instance,
    ("id",),
    (
        "id",
        "last_seq",
        "clock_offset",
        *COMPILING,
        "first_minute",
        "last_minute",
        "live_minute",
        "last_seen_at",
        "ready_at",
        "latched_eager",
        *CALLS,
        "late_windows",
        *LOSSES,
    ),
)


def instances_store(facts: Facts, ids: Ids, *, now_minute: int) -> None:
    """Writes what the facts say of each instance and notes the ids. What adds up is added to new rows as to known ones."""
    known = _read(facts)
    fresh = [key for key in sorted(facts.instances) if key not in known]
    if fresh:
        Instance.objects.bulk_create([_new(key, facts.instances[key], ids, now_minute) for key in fresh], ignore_conflicts=True)
        known |= _read(facts)
    moved, changed = [], []
    for key, fact in facts.instances.items():
        row = known[key]
        ids.instances[key] = row["id"]
        if fact.seq > row["last_seq"] and fact.digest != row["identity_digest"]:
            changed.append((row["id"], fact))
        if (updated := _moved(row, fact)) != _moving(row):
            moved.append(updated)
    for id, fact in sorted(changed, key=lambda pair: pair[0]):
        Instance.objects.filter(id=id).update(**_identity(fact, ids))
    rows_update(MOVING, moved)


def _read(facts: Facts) -> dict[InstanceKey, dict[str, Any]]:
    projects, names = {key.project for key in facts.instances}, {key.instance for key in facts.instances}
    rows = Instance.objects.filter(project_id__in=projects, instance_id__in=names).values(
        "project_id", "instance_id", "identity_digest", *MOVING.columns
    )
    found = {InstanceKey(row["project_id"], row["instance_id"]): row for row in rows}
    return {key: row for key, row in found.items() if key in facts.instances}


def _new(key: InstanceKey, fact: InstanceFact, ids: Ids, now_minute: int) -> Instance:
    return Instance(
        project_id=key.project,
        instance_id=key.instance,
        last_seq=fact.seq,
        clock_offset=fact.clock_offset,
        **dict(zip(COMPILING, fact.compiling, strict=True)),
        first_minute=fact.first_minute,
        last_minute=fact.last_minute,
        live_minute=max(now_minute, fact.last_minute),
        last_seen_at=moment(fact.last_seen),
        ready_at=_date(fact.ready),
        latched_eager=_latched([], fact),
        **dict(zip(CALLS, fact.calls, strict=True)),
        **dict(zip(LOSSES, fact.losses, strict=True)),
        **_identity(fact, ids),
    )


def _identity(fact: InstanceFact, ids: Ids) -> dict[str, Any]:
    columns = {name: value for name, value in fact.identity.items() if name != "started"}
    return {
        **columns,
        "model_id": ids.models[fact.source.version.project, fact.source.version.model],
        "version_id": ids.versions[fact.source.version],
        "environment": fact.source.environment,
        "started_at": moment(fact.identity["started"]),
        "identity_digest": fact.digest,
    }


def _moving(row: dict[str, Any]) -> Row:
    return tuple(row[column] for column in MOVING.columns)


def _moved(row: dict[str, Any], fact: InstanceFact) -> Row:
    """The row's moving columns after the fact, in the order of MOVING."""
    newer = fact.seq > row["last_seq"]
    ready = _date(fact.ready)
    return (
        row["id"],
        max(fact.seq, row["last_seq"]),
        fact.clock_offset if newer else row["clock_offset"],
        *(fact.compiling if newer else (row[name] for name in COMPILING)),
        min(fact.first_minute, row["first_minute"]),
        max(fact.last_minute, row["last_minute"]),
        max(fact.last_minute, row["live_minute"]),
        max(moment(fact.last_seen), row["last_seen_at"]),
        min((at for at in (ready, row["ready_at"]) if at is not None), default=None),
        _latched(row["latched_eager"], fact) if fact.latched else row["latched_eager"],
        *max(fact.calls, tuple(row[name] for name in CALLS)),
        row["late_windows"] + fact.late_windows,
        *(max(value, row[name]) for name, value in zip(LOSSES, fact.losses, strict=True)),
    )


def _date(seconds: float | None) -> datetime | None:
    return None if seconds is None else moment(seconds)


def _latched(known: list[dict[str, Any]], fact: InstanceFact) -> list[dict[str, Any]]:
    """Every frame and cause once, as it was told first, in order of time."""
    found = {(entry["frame"], entry["cause"]): entry for entry in known}
    for (frame, cause), (at, details) in fact.latched.items():
        entry = found.get((frame, cause))
        if entry is None or at < entry["at"]:
            found[frame, cause] = {**json.loads(details), "frame": frame, "cause": cause, "at": at}
    return sorted(found.values(), key=lambda entry: (entry["at"], entry["frame"], entry["cause"]))
