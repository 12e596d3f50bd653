"""Finding states: derived again for each model with new reports.

The rows alone determine the states, so every worker derives the same states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from django.db.models import F, Q, Sum

from dashboard.common.write_lock import write_transaction
from dashboard.fleet.fold.finding_state import Presence, derive_finding_state
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.fold.report_window import minute_of_end
from dashboard.fleet.models import (
    Deployment,
    FindingLife,
    FindingVersion,
    Instance,
    ModelVersion,
    WatchedModel,
)
from dashboard.fleet.selectors.instances.instance_states import can_report
from dashboard.fleet.writers.bulk_upsert import Row, Table, rows_upsert

_KEY = ("finding_id", "environment")
_VALUE_COLUMNS = ("state", "since_minute", "first_version_id", "last_version_id")
FINDING_LIFE_TABLE = Table(FindingLife, _KEY, (*_KEY, *_VALUE_COLUMNS))

Sightings = dict[tuple[int, str], list[FindingVersion]]
"""Rows of one finding in one environment, one per version."""


def update_finding_states() -> int:
    """Update the finding states of every model with new reports; return the number of changed
    states."""
    totals = ModelVersion.objects.values("model_id", "model__lives_revision").annotate(
        total=Sum("revision")
    )
    waiting = (
        totals.filter(~Q(total=F("model__lives_revision")))
        .order_by("model_id")
        .values_list("model_id", "total")
    )
    return sum(
        update_model_finding_states(model_id=model_id, revision=total)
        for model_id, total in waiting
    )


def update_model_finding_states(*, model_id: int, revision: int) -> int:
    """Write the finding states that changed; return their number.

    `revision` was read before the rows. If rows change in between, the revisions differ again and
    the next sweep repeats the work.
    """
    said = {row[:2]: row for row in _derive_states(model_id)}
    known = {
        row[0:2]: row
        for row in FindingLife.objects.filter(finding__model_id=model_id).values_list(
            *_KEY, *_VALUE_COLUMNS
        )
    }
    changed = [row for key, row in said.items() if known.get(key) != row]
    with write_transaction():
        rows_upsert(FINDING_LIFE_TABLE, changed)
        WatchedModel.objects.filter(pk=model_id).update(lives_revision=revision)
    return len(changed)


def _derive_states(model_id: int) -> Iterator[Row]:
    sightings = _read_sightings(model_id)
    if not sightings:
        return
    present: dict[str, list[Presence]] = defaultdict(list)
    blind = _find_blind_versions(model_id) - {
        (environment, row.version_id)
        for (_, environment), seen in sightings.items()
        for row in seen
    }
    deployments = Deployment.objects.filter(model_id=model_id).order_by("pk")
    for environment, *span in deployments.values_list(
        "environment", "version_id", "started_minute", "last_minute"
    ):
        if (environment, span[0]) not in blind:
            present[environment].append(Presence(*span))
    names = dict(ModelVersion.objects.filter(model_id=model_id).values_list("pk", "name"))
    for (finding, environment), seen in sightings.items():
        life = derive_finding_state(
            {row.version_id: minute_of_end(row.first_seen_at.timestamp()) for row in seen},
            present[environment],
        )
        first = min(seen, key=lambda row: (row.first_seen_at, names[row.version_id]))
        last = max(seen, key=lambda row: (row.last_seen_at, names[row.version_id]))
        yield finding, environment, life.state, life.since, first.version_id, last.version_id


def _find_blind_versions(model_id: int) -> set[tuple[str, int]]:
    """Return the environments and versions without any instance that reports compilations.

    Engines that are scraped from outside are an example: a finding may exist there unseen. A
    version without any stored instance is not included.
    """
    rows = (
        Instance.objects.filter(model_id=model_id)
        .order_by()
        .values_list("environment", "version_id", "capabilities")
        .distinct()
    )
    places: dict[tuple[str, int], bool] = {}
    for environment, version, capabilities in rows:
        place = environment, version
        places[place] = places.get(place, True) and not can_report(capabilities, "compilations")
    return {place for place, alone in places.items() if alone}


def _read_sightings(model_id: int) -> Sightings:
    """Return the rows of each finding and environment. The collective finding `other` has no
    state."""
    found: Sightings = defaultdict(list)
    for row in (
        FindingVersion.objects.filter(finding__model_id=model_id)
        .exclude(finding__fingerprint=OTHER)
        .order_by("pk")
    ):
        found[row.finding_id, row.environment].append(row)
    return found
