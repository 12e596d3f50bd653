"""Numerics writer: one row per golden batch and instance; the newest result wins."""

from __future__ import annotations

import json

from compilewatch.wire.numerics import MAX_GOLDENS

from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.numerics import ParityFact
from dashboard.fleet.models import ParityResult
from dashboard.fleet.writers.dimension_ids import DimensionIds, to_datetime


def parities_store(facts: Facts, ids: DimensionIds) -> None:
    """Write the results of golden batches.

    Beyond an instance's limit, the first names remain. No query if the facts have no results.
    """
    told = {
        ids.instances[key]: (key.project, fact.parities)
        for key, fact in facts.instances.items()
        if fact.parities
    }
    if not told:
        return
    known: dict[int, dict[str, ParityResult]] = {id: {} for id in told}
    for row in ParityResult.objects.filter(instance_id__in=told):
        known[row.instance_id][row.name] = row
    made: list[ParityResult] = []
    moved: list[ParityResult] = []
    for id, (project, parities) in sorted(told.items()):
        rows = known[id]
        for name, fact in sorted(parities.items()):
            if name in rows:
                moved.append(_fill(rows[name], fact.merged(_to_fact(rows[name]))))
            elif len(rows) < MAX_GOLDENS:
                rows[name] = _fill(
                    ParityResult(project_id=project, instance_id=id, name=name), fact
                )
                made.append(rows[name])
    ParityResult.objects.bulk_create(made, ignore_conflicts=True)
    ParityResult.objects.bulk_update(moved, ["state", "at", "failed_at", "told"], batch_size=100)


def _fill(row: ParityResult, fact: ParityFact) -> ParityResult:
    row.told = json.loads(fact.told)
    row.state, row.at = row.told["state"], to_datetime(fact.at)
    row.failed_at = None if fact.failed_at is None else to_datetime(fact.failed_at)
    return row


def _to_fact(row: ParityResult) -> ParityFact:
    failed = None if row.failed_at is None else row.failed_at.timestamp()
    return ParityFact(row.at.timestamp(), json.dumps(row.told, sort_keys=True), failed)
