"""Compilations and cold starts to rows."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from compilewatch.wire.report import COLD_START_ENDS

from dashboard.fleet.fold.facts import ColdStartFact, Facts, Told
from dashboard.fleet.fold.keys import InstanceKey, instance_of
from dashboard.fleet.models import ColdStart, CompileEvent
from dashboard.fleet.stored.dimensions import Ids, moment

Compiled = tuple[float, float]
"""When a compilation was over, and how long it took, in seconds."""

_CHANGING = ("ready_at", "first_compile_at", "first_call_at", "total", "phases", "unaccounted")


def compiles_store(facts: Facts, ids: Ids) -> None:
    """One row per compilation; its key is its place in its report, so that a repeat is the same row."""
    rows = [
        CompileEvent(
            project_id=fact.source.version.project,
            day=fact.day,
            instance_id=ids.instances[instance_of(fact.source)],
            seq=fact.seq,
            number=fact.number,
            version_id=ids.versions[fact.source.version],
            environment=fact.source.environment,
            at=moment(fact.at),
            **fact.columns,
        )
        for fact in facts.compiles.values()
    ]
    CompileEvent.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)


def cold_starts_store(facts: Facts, ids: Ids) -> None:
    """Completes the cold starts that these facts tell more of."""
    owners = {ids.instances[key]: key for key in facts.cold_starts}
    known = ColdStart.objects.in_bulk(list(owners))
    compiled = {ids.instances[key] for key, _, _ in facts.compiles}
    touched: dict[int, ColdStart] = {}
    for id, key in sorted(owners.items()):
        start = known.get(id) or _started(facts, ids, key)
        if _merge(start, facts.cold_starts[key]) or id in compiled:
            touched[id] = start
    _account(touched)
    ColdStart.objects.bulk_create([start for id, start in touched.items() if id not in known])
    ColdStart.objects.bulk_update([start for id, start in touched.items() if id in known], _CHANGING, batch_size=100)


def _started(facts: Facts, ids: Ids, key: InstanceKey) -> ColdStart:
    fact = facts.cold_starts[key]
    return ColdStart(
        instance_id=ids.instances[key],
        project_id=key.project,
        version_id=ids.versions[fact.source.version],
        started_at=moment(fact.started),
        phases={"marks": {}},
    )


def _merge(start: ColdStart, fact: ColdStartFact) -> bool:
    """Takes over what is earlier than what was known; True if anything was."""
    before = (start.ready_at, start.first_compile_at, start.first_call_at, json.dumps(start.phases))
    start.ready_at = _earlier(start.ready_at, fact.ready)
    start.first_compile_at = _earlier(start.first_compile_at, fact.first_compile)
    start.first_call_at = _earlier(start.first_call_at, fact.first_call)
    marks: dict[str, float] = start.phases["marks"]
    for name, at in fact.marks.items():
        since = at - start.started_at.timestamp()
        marks[name] = min(since, marks.get(name, since))
    if fact.told is not None and (not _is_told(start) or (fact.told[0], fact.told[1]) > (_until_ready(start), start.total)):
        _tell(start, fact.told)
    return before != (start.ready_at, start.first_compile_at, start.first_call_at, json.dumps(start.phases))


def _is_told(start: ColdStart) -> bool:
    return "stages" in start.phases


def _until_ready(start: ColdStart) -> bool:
    return bool(start.phases.get("until") == COLD_START_ENDS[1])


def _tell(start: ColdStart, told: Told) -> None:
    """Takes over what the agent itself says: it saw every compilation and the process before its first report."""
    _, start.total, text = told
    said = json.loads(text)
    start.unaccounted = said.pop("unaccounted")
    start.phases = {"marks": start.phases["marks"], **said}


def _earlier(known: datetime | None, seconds: float | None) -> datetime | None:
    if seconds is None:
        return known
    return moment(seconds) if known is None else min(known, moment(seconds))


def _account(starts: dict[int, ColdStart]) -> None:
    """The total of each start, its phases in order, and what no phase explains."""
    events = _events({id: start for id, start in starts.items() if start.first_compile_at is not None})
    for id, start in starts.items():
        end = start.ready_at or start.first_call_at
        if end is not None and not _is_told(start):
            _account_one(start, end, [(at, seconds) for at, seconds in events.get(id, []) if at <= end.timestamp()])


def _events(starts: dict[int, ColdStart]) -> dict[int, list[Compiled]]:
    """Moment and seconds of the compilations of these instances."""
    found: dict[int, list[Compiled]] = {}
    if starts:
        projects, since = {start.project_id for start in starts.values()}, min(_day(start.started_at) for start in starts.values())
        rows = CompileEvent.objects.filter(project_id__in=projects, day__gte=since, instance_id__in=list(starts))
        for id, at, total in rows.values_list("instance_id", "at", "total"):
            found.setdefault(id, []).append((at.timestamp(), total or 0.0))
    return found


def _account_one(start: ColdStart, end: datetime, events: list[Compiled]) -> None:
    """Compilations that ran side by side can explain more than there was; then nothing is unaccounted for."""
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
