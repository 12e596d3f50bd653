"""Cold start writer: merges the starts of processes into their rows."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from compilewatch.wire.messages import COLD_START_ENDS
from django.db import transaction

from dashboard.fleet.fold.facts import ColdStartFact, ColdStartReport, Facts
from dashboard.fleet.fold.keys import InstanceKey
from dashboard.fleet.models import ColdStart, CompileEvent
from dashboard.fleet.writers.bulk_upsert import Table, rows_insert
from dashboard.fleet.writers.dimension_ids import DimensionIds, to_datetime

CompileTime = tuple[float, float]
"""End of a compilation and its duration, in seconds."""

_CHANGING_COLUMNS = (
    "ready_at",
    "first_compile_at",
    "first_call_at",
    "total",
    "phases",
    "unaccounted",
)
_COLUMNS = ("instance_id", "project_id", "version_id", "started_at", *_CHANGING_COLUMNS)
_NEW_TABLE = Table(ColdStart, ("instance_id",), _COLUMNS)

MAX_KNOWN_FIRST_CALLS = 200_000
_first_calls: dict[int, float] = {}
"""Cache of committed first calls by Instance.id. A first call only moves to an earlier time, so a
later one adds nothing."""


def clear_first_calls() -> None:
    """Clear the cache, as a restart does."""
    _first_calls.clear()


def cold_starts_store(facts: Facts, ids: DimensionIds) -> None:
    """Merge the facts' cold starts into their rows."""
    compiled = {ids.instances[key] for key, _, _ in facts.compiles}
    owners = {ids.instances[key]: key for key, fact in facts.cold_starts.items()}
    owners = {
        id: key
        for id, key in owners.items()
        if id in compiled or _may_add(id, facts.cold_starts[key])
    }
    known = ColdStart.objects.in_bulk([id for id in owners if id not in ids.new_instances])
    touched: dict[int, ColdStart] = {}
    seen: dict[int, float] = {}
    for id, key in sorted(owners.items()):
        start = known.get(id) or _build_cold_start(facts, ids, key)
        if _merge(start, facts.cold_starts[key]) or id in compiled:
            touched[id] = start
        if start.first_call_at is not None:
            seen[id] = start.first_call_at.timestamp()
    _compute_phases(touched)
    rows_insert(
        _NEW_TABLE,
        [
            tuple(getattr(start, name) for name in _COLUMNS)
            for id, start in touched.items()
            if id not in known
        ],
    )
    ColdStart.objects.bulk_update(
        [start for id, start in touched.items() if id in known], _CHANGING_COLUMNS, batch_size=100
    )
    transaction.on_commit(lambda: _cache_first_calls(seen))


def _may_add(id: int, fact: ColdStartFact) -> bool:
    """Return whether the fact may change the row.

    Most reports only repeat that calls run compiled.
    """
    known = _first_calls.get(id)
    only_a_call = (
        fact.told is None and not fact.marks and fact.ready is None and fact.first_compile is None
    )
    return known is None or not only_a_call or fact.first_call is None or fact.first_call < known


def _cache_first_calls(seen: dict[int, float]) -> None:
    if len(_first_calls) > MAX_KNOWN_FIRST_CALLS:
        _first_calls.clear()
    _first_calls.update(seen)


def _build_cold_start(facts: Facts, ids: DimensionIds, key: InstanceKey) -> ColdStart:
    fact = facts.cold_starts[key]
    return ColdStart(
        instance_id=ids.instances[key],
        project_id=key.project,
        version_id=ids.versions[fact.source.version],
        started_at=to_datetime(fact.started),
        phases={"marks": {}},
    )


def _merge(start: ColdStart, fact: ColdStartFact) -> bool:
    """Merge a fact into a start: the earlier times win; return whether anything changed."""
    before = (start.ready_at, start.first_compile_at, start.first_call_at, json.dumps(start.phases))
    start.ready_at = _earlier(start.ready_at, fact.ready)
    start.first_compile_at = _earlier(start.first_compile_at, fact.first_compile)
    start.first_call_at = _earlier(start.first_call_at, fact.first_call)
    marks: dict[str, float] = start.phases["marks"]
    for name, at in fact.marks.items():
        since = at - start.started_at.timestamp()
        marks[name] = min(since, marks.get(name, since))
    if fact.told is not None and (
        not _is_reported(start) or (fact.told[0], fact.told[1]) > (_until_ready(start), start.total)
    ):
        _apply_report(start, fact.told)
    return before != (
        start.ready_at,
        start.first_compile_at,
        start.first_call_at,
        json.dumps(start.phases),
    )


def _is_reported(start: ColdStart) -> bool:
    return "stages" in start.phases


def _until_ready(start: ColdStart) -> bool:
    return bool(start.phases.get("until") == COLD_START_ENDS[1])


def _apply_report(start: ColdStart, told: ColdStartReport) -> None:
    """Apply the agent's own report, which covers all compilations and the time before the first
    report."""
    _, start.total, text = told
    said = json.loads(text)
    start.unaccounted = said.pop("unaccounted")
    start.phases = {"marks": start.phases["marks"], **said}


def _earlier(known: datetime | None, seconds: float | None) -> datetime | None:
    if seconds is None:
        return known
    return to_datetime(seconds) if known is None else min(known, to_datetime(seconds))


def _compute_phases(starts: dict[int, ColdStart]) -> None:
    """Compute total, phases and unaccounted time of each start."""
    events = _read_events(
        {id: start for id, start in starts.items() if start.first_compile_at is not None}
    )
    for id, start in starts.items():
        end = start.ready_at or start.first_call_at
        if end is not None and not _is_reported(start):
            _compute_start_phases(
                start,
                end,
                [(at, seconds) for at, seconds in events.get(id, []) if at <= end.timestamp()],
            )


def _read_events(starts: dict[int, ColdStart]) -> dict[int, list[CompileTime]]:
    """Return time and seconds of the compilations of these instances."""
    found: dict[int, list[CompileTime]] = {}
    if starts:
        projects, since = (
            {start.project_id for start in starts.values()},
            min(_day(start.started_at) for start in starts.values()),
        )
        rows = CompileEvent.objects.filter(
            project_id__in=projects, day__gte=since, instance_id__in=list(starts)
        )
        for id, at, total in rows.values_list("instance_id", "at", "total"):
            found.setdefault(id, []).append((at.timestamp(), total or 0.0))
    return found


def _compute_start_phases(start: ColdStart, end: datetime, events: list[CompileTime]) -> None:
    """Compute total, phases and unaccounted time of a start.

    Parallel compilations can exceed the total; the unaccounted time is then 0.
    """
    start.total = max(0.0, (end - start.started_at).total_seconds())
    phases: dict[str, Any] = {"marks": start.phases["marks"]}
    if events:
        begun = min(at - seconds for at, seconds in events)
        phases["before_compiling"] = max(0.0, begun - start.started_at.timestamp())
        phases["compiling"] = sum(seconds for _, seconds in events)
        start.unaccounted = max(0.0, start.total - phases["before_compiling"] - phases["compiling"])
    start.phases = phases


def _day(at: datetime) -> int:
    return int(at.timestamp() // 86400)
