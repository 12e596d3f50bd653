"""Findings to rows: one per fingerprint and model, with how often which version and which instance saw it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from dashboard.fleet.fold.facts import Facts, FindingFact, Seen
from dashboard.fleet.fold.keys import FindingKey, Source, instance_of
from dashboard.fleet.models import Finding, FindingInstance, FindingVersion
from dashboard.fleet.stored.bulk import Table, rows_upsert
from dashboard.fleet.stored.dimensions import Ids, moment

_SEEN = ("count", "first_seen_at", "last_seen_at")
_ADDED, _LARGEST, _SMALLEST = frozenset({"count"}), frozenset({"last_seen_at"}), frozenset({"first_seen_at"})
_VERSION, _INSTANCE = ("finding_id", "version_id", "environment"), ("finding_id", "instance_id")
VERSIONS = Table(FindingVersion, _VERSION, (*_VERSION, *_SEEN), _ADDED, _LARGEST, _SMALLEST)
INSTANCES = Table(FindingInstance, _INSTANCE, (*_INSTANCE, *_SEEN), _ADDED, _LARGEST, _SMALLEST)


@dataclass(frozen=True)
class _Range:
    """When a finding was seen in these facts, and by which versions first and last."""

    count: int
    first: float
    last: float
    first_version: int
    last_version: int


def findings_store(facts: Facts, ids: Ids) -> None:
    """Adds the sightings. Versions share findings, so their rows are locked, in order of id, until the fold commits."""
    if not facts.findings:
        return
    known = _found(facts, ids)
    ranges = {known[key]: _range(fact, ids) for key, fact in facts.findings.items()}
    for finding in Finding.objects.select_for_update().filter(id__in=ranges).order_by("id"):
        _update(finding, ranges[finding.id])
        finding.save(update_fields=["state", "first_version", "last_version", "first_seen_at", "last_seen_at", "count"])
    _sightings_store(facts, known, VERSIONS, lambda source: (ids.versions[source.version], source.environment))
    _sightings_store(facts, known, INSTANCES, lambda source: (ids.instances[instance_of(source)],))


def _found(facts: Facts, ids: Ids) -> dict[FindingKey, int]:
    """Ids of the findings; a new one starts with no count, which the update adds like any other."""
    wanted = {(ids.models[key.project, key.model], key.kind, key.fingerprint): key for key in sorted(facts.findings)}
    known: dict[FindingKey, int] = {}

    def read() -> None:
        rows = Finding.objects.filter(model_id__in={key[0] for key in wanted}, fingerprint__in={key[2] for key in wanted})
        for id, model, kind, fingerprint in rows.values_list("id", "model_id", "kind", "fingerprint"):
            if (key := wanted.get((model, kind, fingerprint))) is not None:
                known[key] = id

    read()
    missing = [(columns[0], key) for columns, key in wanted.items() if key not in known]
    if missing:
        Finding.objects.bulk_create([_new(model, key, facts.findings[key], ids) for model, key in missing], ignore_conflicts=True)
        read()
    return known


def _new(model: int, key: FindingKey, fact: FindingFact, ids: Ids) -> Finding:
    seen = _range(fact, ids)
    _, text, where = fact.sample
    return Finding(
        project_id=key.project,
        model_id=model,
        kind=key.kind,
        fingerprint=key.fingerprint,
        text=text,
        where=where,
        first_version_id=seen.first_version,
        last_version_id=seen.last_version,
        first_seen_at=moment(seen.first),
        last_seen_at=moment(seen.last),
    )


def _range(fact: FindingFact, ids: Ids) -> _Range:
    first, first_source = min((seen.first, source) for source, seen in fact.seen.items())
    last, last_source = max((seen.last, source) for source, seen in fact.seen.items())
    count = sum(seen.count for seen in fact.seen.values())
    return _Range(count, first, last, ids.versions[first_source.version], ids.versions[last_source.version])


def _update(finding: Finding, seen: _Range) -> None:
    finding.count += seen.count
    if moment(seen.first) < finding.first_seen_at:
        finding.first_seen_at, finding.first_version_id = moment(seen.first), seen.first_version
    if moment(seen.last) > finding.last_seen_at:
        finding.last_seen_at, finding.last_version_id = moment(seen.last), seen.last_version
        if finding.state == "gone":
            finding.state = "back"
    if finding.state == "new" and finding.first_version_id != finding.last_version_id:
        finding.state = "ongoing"


def _sightings_store(facts: Facts, known: dict[FindingKey, int], table: Table, owner: Callable[[Source], tuple[Hashable, ...]]) -> None:
    found: dict[tuple[Hashable, ...], Seen] = {}
    for key, fact in facts.findings.items():
        for source, seen in fact.seen.items():
            place = (known[key], *owner(source))
            if place in found:
                found[place].add(seen)
            else:
                found[place] = Seen(seen.count, seen.first, seen.last)
    rows_upsert(table, [(*place, seen.count, moment(seen.first), moment(seen.last)) for place, seen in found.items()])
