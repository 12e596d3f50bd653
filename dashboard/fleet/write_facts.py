"""Fact writer: facts to rows in the caller's transaction.

Values add up, so any split of the reports into batches yields the same rows.
"""

from __future__ import annotations

from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.watermark import find_first_on_time_minute
from dashboard.fleet.writers.calls import calls_store
from dashboard.fleet.writers.cold_starts import cold_starts_store
from dashboard.fleet.writers.dimension_ids import resolve_ids
from dashboard.fleet.writers.events import compiles_store
from dashboard.fleet.writers.findings import findings_store
from dashboard.fleet.writers.instances import instances_store
from dashboard.fleet.writers.limits import limit_facts, record_saturation
from dashboard.fleet.writers.numerics import parities_store
from dashboard.fleet.writers.processes import processes_store
from dashboard.fleet.writers.versions import (
    deployments_store,
    models_store,
    series_store,
    versions_store,
)


def facts_store(facts: Facts, *, now: float) -> None:
    """Write the facts as of `now` (Unix seconds).

    Rows of a single version are written first. Rows that versions share are locked last.
    """
    if not facts.seen:
        return
    facts = limit_facts(facts, now=now)
    ids = resolve_ids(facts)
    instances_store(facts, ids, now_minute=int(now // 60))
    parities_store(facts, ids)
    saturated = calls_store(facts, ids) + processes_store(facts, ids)
    compiles_store(facts, ids)
    cold_starts_store(facts, ids)
    series_store(facts, ids)
    versions_store(facts, ids, late_before=find_first_on_time_minute(now))
    deployments_store(facts, ids, now_minute=int(now // 60))
    findings_store(facts, ids, today=int(now // 86400))
    models_store(facts, ids)
    record_saturation(saturated, now=now)
