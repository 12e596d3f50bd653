"""Event writer: compilations to rows."""

from __future__ import annotations

from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.keys import to_instance_key
from dashboard.fleet.models import CompileEvent
from dashboard.fleet.writers.dimension_ids import DimensionIds, to_datetime


def compiles_store(facts: Facts, ids: DimensionIds) -> None:
    """Insert one row per compilation.

    The key is the position in its report, so a repeated report changes nothing.
    """
    rows = [
        CompileEvent(
            project_id=fact.source.version.project,
            day=fact.day,
            instance_id=ids.instances[to_instance_key(fact.source)],
            seq=fact.seq,
            number=fact.number,
            version_id=ids.versions[fact.source.version],
            environment=fact.source.environment,
            at=to_datetime(fact.at),
            **fact.columns,
        )
        for fact in facts.compiles.values()
    ]
    CompileEvent.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
