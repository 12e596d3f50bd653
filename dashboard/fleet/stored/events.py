"""Compilations and cold starts to rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.fleet.fold.facts import ColdStartFact, Facts
from dashboard.fleet.fold.keys import InstanceKey, instance_of
from dashboard.fleet.models import ColdStart, CompileEvent
from dashboard.fleet.stored.dimensions import Ids, moment

Known = dict[int, ColdStart]


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
    for id, key in sorted(owners.items()):
        start = known.get(id) or _started(facts, ids, key)
        changed = _merge(start, facts.cold_starts[key])
        if changed or id in compiled or id not in known:
            _account(start)
            start.save(force_insert=id not in known)


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
    before = (start.ready_at, start.first_compile_at, start.first_call_at, dict(start.phases["marks"]))
    start.ready_at = _earlier(start.ready_at, fact.ready)
    start.first_compile_at = _earlier(start.first_compile_at, fact.first_compile)
    start.first_call_at = _earlier(start.first_call_at, fact.first_call)
    marks: dict[str, float] = start.phases["marks"]
    for name, at in fact.marks.items():
        since = at - start.started_at.timestamp()
        marks[name] = min(since, marks.get(name, since))
    return before != (start.ready_at, start.first_compile_at, start.first_call_at, marks)


def _earlier(known: datetime | None, seconds: float | None) -> datetime | None:
    if seconds is None:
        return known
    return moment(seconds) if known is None else min(known, moment(seconds))


def _account(start: ColdStart) -> None:
    """The total, its phases in order, and what no phase explains. Compilations that ran side by side can explain more than all of it."""
    end = start.ready_at or start.first_call_at
    if end is None:
        return
    start.total = max(0.0, (end - start.started_at).total_seconds())
    found = CompileEvent.objects.filter(
        project_id=start.project_id, day__gte=_day(start.started_at), instance_id=start.instance_id, at__lte=end
    ).values_list("at", "total")
    events = [(at.timestamp(), total or 0.0) for at, total in found]
    phases: dict[str, Any] = {"marks": start.phases["marks"]}
    if events:
        begun = min(at - total for at, total in events)
        phases["before_compiling"] = max(0.0, begun - start.started_at.timestamp())
        phases["compiling"] = sum(total for _, total in events)
    start.phases = phases
    start.unaccounted = max(0.0, start.total - phases.get("before_compiling", 0.0) - phases.get("compiling", 0.0)) if events else None


def _day(at: datetime) -> int:
    return int(at.timestamp() // 86400)
