"""Finding writer: one row per model and fingerprint, with occurrences per version and instance."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime

from compilewatch.wire.messages import pattern_rank

from dashboard.fleet.fold.counters import COUNTER_MAX
from dashboard.fleet.fold.facts import Facts, FindingFact, Occurrences, limit_values
from dashboard.fleet.fold.keys import FindingKey, Source, to_instance_key
from dashboard.fleet.models import Finding, FindingInstance, FindingVersion
from dashboard.fleet.writers.bulk_upsert import Table, rows_upsert
from dashboard.fleet.writers.dimension_ids import DimensionIds, to_datetime

_SIGHTING_COLUMNS = ("count", "first_seen_at", "last_seen_at", "seconds")
_ADDED, _LARGEST, _SMALLEST = (
    frozenset({"count", "seconds"}),
    frozenset({"last_seen_at"}),
    frozenset({"first_seen_at"}),
)
_VERSION, _INSTANCE = ("finding_id", "version_id", "environment"), ("finding_id", "instance_id")
VERSION_SIGHTINGS = Table(
    FindingVersion, _VERSION, (*_VERSION, *_SIGHTING_COLUMNS), _ADDED, _LARGEST, _SMALLEST
)
INSTANCE_SIGHTINGS = Table(
    FindingInstance, _INSTANCE, (*_INSTANCE, *_SIGHTING_COLUMNS), _ADDED, _LARGEST, _SMALLEST
)


UPDATED_FIELDS = (
    *("first_version", "last_version", "first_seen_at", "last_seen_at"),
    *("count", "text", "where", "values", "distinct", "pattern"),
)

_Sighting = tuple[datetime, str, int]
"""Time, version name and version id of an occurrence. The name breaks ties of equal times
independent of the fold order."""


@dataclass(frozen=True)
class _Range:
    """Count of a finding in these facts, and its first and last occurrence."""

    count: int
    first: _Sighting
    last: _Sighting
    text: str
    where: str
    fact: FindingFact


def findings_store(facts: Facts, ids: DimensionIds, *, today: int) -> None:
    """Add the occurrences.

    Versions share findings, so the fold locks their rows, ordered by id, until it commits.
    """
    if not facts.findings:
        return
    known = _find_or_create(facts, ids, today)
    ranges = {known[key]: _range(fact, ids) for key, fact in facts.findings.items()}
    rows = Finding.objects.select_for_update(of=("self",)).select_related(
        "first_version", "last_version"
    )
    for finding in rows.filter(id__in=ranges).order_by("id"):
        _update(finding, ranges[finding.id])
        finding.save(update_fields=UPDATED_FIELDS)
    _sightings_store(
        facts,
        known,
        VERSION_SIGHTINGS,
        lambda source: (ids.versions[source.version], source.environment),
    )
    _sightings_store(
        facts, known, INSTANCE_SIGHTINGS, lambda source: (ids.instances[to_instance_key(source)],)
    )


def _find_or_create(facts: Facts, ids: DimensionIds, today: int) -> dict[FindingKey, int]:
    """Return the ids of the findings.

    A new finding starts with count 0; the update then adds the occurrences.
    """
    wanted = {
        (ids.models[key.project, key.model], key.kind, key.fingerprint): key
        for key in sorted(facts.findings)
    }
    known: dict[FindingKey, int] = {}

    def read() -> None:
        rows = Finding.objects.filter(
            model_id__in={key[0] for key in wanted}, fingerprint__in={key[2] for key in wanted}
        )
        for id, model, kind, fingerprint in rows.values_list(
            "id", "model_id", "kind", "fingerprint"
        ):
            if (key := wanted.get((model, kind, fingerprint))) is not None:
                known[key] = id

    read()
    missing = [(columns[0], key) for columns, key in wanted.items() if key not in known]
    if missing:
        Finding.objects.bulk_create(
            [_build_finding(model, key, facts.findings[key], ids, today) for model, key in missing],
            ignore_conflicts=True,
        )
        read()
    return known


def _build_finding(
    model: int, key: FindingKey, fact: FindingFact, ids: DimensionIds, today: int
) -> Finding:
    seen = _range(fact, ids)
    return Finding(
        project_id=key.project,
        model_id=model,
        kind=key.kind,
        fingerprint=key.fingerprint,
        text=seen.text,
        where=seen.where,
        first_version_id=seen.first[2],
        last_version_id=seen.last[2],
        first_seen_at=seen.first[0],
        last_seen_at=seen.last[0],
        made_day=today,
    )


def _range(fact: FindingFact, ids: DimensionIds) -> _Range:
    first = min(
        (to_datetime(seen.first), source.version.version, ids.versions[source.version])
        for source, seen in fact.seen.items()
    )
    last = max(
        (to_datetime(seen.last), source.version.version, ids.versions[source.version])
        for source, seen in fact.seen.items()
    )
    _, text, where = fact.sample
    return _Range(sum(seen.count for seen in fact.seen.values()), first, last, text, where, fact)


def _update(finding: Finding, seen: _Range) -> None:
    """Add occurrences to a finding.

    The text is the one of the first occurrence, so it does not depend on the order of reports.
    """
    finding.count = min(finding.count + seen.count, COUNTER_MAX)
    finding.values = sorted(limit_values(seen.fact.values.union(finding.values)))
    finding.distinct = max(finding.distinct, seen.fact.distinct)
    finding.pattern = max(finding.pattern, seen.fact.pattern, key=pattern_rank)
    at = finding.first_seen_at
    if (seen.first[0], seen.text, seen.where) < (at, finding.text, finding.where):
        finding.text, finding.where = seen.text, seen.where
    if seen.first[:2] < (at, finding.first_version.name):
        finding.first_seen_at, _, finding.first_version_id = seen.first
    if seen.last[:2] > (finding.last_seen_at, finding.last_version.name):
        finding.last_seen_at, _, finding.last_version_id = seen.last


def _sightings_store(
    facts: Facts,
    known: dict[FindingKey, int],
    table: Table,
    owner: Callable[[Source], tuple[Hashable, ...]],
) -> None:
    found: dict[tuple[Hashable, ...], Occurrences] = {}
    for key, fact in facts.findings.items():
        for source, seen in fact.seen.items():
            place = (known[key], *owner(source))
            if place in found:
                found[place].add(seen)
            else:
                found[place] = replace(seen)
    rows_upsert(
        table,
        [
            (*place, seen.count, to_datetime(seen.first), to_datetime(seen.last), seen.seconds)
            for place, seen in found.items()
        ],
    )
