"""What has become of the findings of each model that reported since the last look; any worker reads the same off the same rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from django.db.models import F, Q, Sum

from dashboard.common.write_lock import write_transaction
from dashboard.fleet.fold.finding_state import Presence, finding_life
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.fold.report_window import minute_of_end
from dashboard.fleet.models import Deployment, FindingLife, FindingVersion, Instance, ModelVersion, WatchedModel
from dashboard.fleet.selectors.instances.instance_states import tells
from dashboard.fleet.writers.bulk_upsert import Row, Table, rows_upsert

_KEY = ("finding_id", "environment")
_SAID = ("state", "since_minute", "first_version_id", "last_version_id")
LIVES = Table(FindingLife, _KEY, (*_KEY, *_SAID))

Sightings = dict[tuple[int, str], list[FindingVersion]]
"""By finding and environment, one a version."""


def lives_update() -> int:
    """Brings the findings of every model that reported up to date; returns how many changed."""
    totals = ModelVersion.objects.values("model_id", "model__lives_revision").annotate(total=Sum("revision"))
    waiting = totals.filter(~Q(total=F("model__lives_revision"))).order_by("model_id").values_list("model_id", "total")
    return sum(model_lives_update(model_id=model_id, revision=total) for model_id, total in waiting)


def model_lives_update(*, model_id: int, revision: int) -> int:
    """Writes the lives that differ. The revision was read before the rows: whoever writes last leaves the work due if it read too early."""
    said = {row[:2]: row for row in _lives(model_id)}
    known = {row[0:2]: row for row in FindingLife.objects.filter(finding__model_id=model_id).values_list(*_KEY, *_SAID)}
    changed = [row for key, row in said.items() if known.get(key) != row]
    with write_transaction():
        rows_upsert(LIVES, changed)
        WatchedModel.objects.filter(pk=model_id).update(lives_revision=revision)
    return len(changed)


def _lives(model_id: int) -> Iterator[Row]:
    sightings = _sightings(model_id)
    if not sightings:
        return
    present: dict[str, list[Presence]] = defaultdict(list)
    blind = _blind(model_id) - {(environment, row.version_id) for (_, environment), seen in sightings.items() for row in seen}
    deployments = Deployment.objects.filter(model_id=model_id).order_by("pk")
    for environment, *span in deployments.values_list("environment", "version_id", "started_minute", "last_minute"):
        if (environment, span[0]) not in blind:
            present[environment].append(Presence(*span))
    names = dict(ModelVersion.objects.filter(model_id=model_id).values_list("pk", "name"))
    for (finding, environment), seen in sightings.items():
        life = finding_life({row.version_id: minute_of_end(row.first_seen_at.timestamp()) for row in seen}, present[environment])
        first = min(seen, key=lambda row: (row.first_seen_at, names[row.version_id]))
        last = max(seen, key=lambda row: (row.last_seen_at, names[row.version_id]))
        yield finding, environment, life.state, life.since, first.version_id, last.version_id


def _blind(model_id: int) -> set[tuple[str, int]]:
    """Environments and versions of which no instance tells what it compiles, such as engines that are read from outside: what those do
    not show may be there all the same. Of a version whose instances are forgotten nothing is held against it."""
    rows = Instance.objects.filter(model_id=model_id).order_by().values_list("environment", "version_id", "capabilities").distinct()
    places: dict[tuple[str, int], bool] = {}
    for environment, version, capabilities in rows:
        place = environment, version
        places[place] = places.get(place, True) and not tells(capabilities, "compilations")
    return {place for place, alone in places.items() if alone}


def _sightings(model_id: int) -> Sightings:
    """What stands for many findings has no life of its own."""
    found: Sightings = defaultdict(list)
    for row in FindingVersion.objects.filter(finding__model_id=model_id).exclude(finding__fingerprint=OTHER).order_by("pk"):
        found[row.finding_id, row.environment].append(row)
    return found
