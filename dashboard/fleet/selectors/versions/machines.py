"""Machines: the hosts, GPU types, drivers and torch releases of live instances."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTextTransform

from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import Instance

LIVE_MINUTES = 30
MOST_MACHINES = 100
"""Maximum number of machines of a deployment, by name, so that two deployments on the same machines
list the same ones."""
PLAIN = ("GPU", "driver", "torch")

VersionPlace = tuple[int, str]
"""ModelVersion.id and environment."""
Trait = tuple[str, str]


def read_machines(
    *, places: Collection[VersionPlace], since_minute: int
) -> dict[VersionPlace, set[Trait]]:
    """Return the hardware and releases of the live instances as (kind, name); one query."""
    rows = _filter_live(since_minute).filter(version_id__in={version for version, _ in places})
    found: dict[VersionPlace, set[Trait]] = {}
    machines: dict[VersionPlace, set[str]] = {}
    for version, environment, host, *plain in rows.values_list(
        "version_id", "environment", "host", *_PLAIN
    ).distinct():
        place = version, environment
        if place in places:
            found.setdefault(place, set()).update(_list_traits(plain))
            machines.setdefault(place, set()).update([host] if host else [])
    for place, hosts in machines.items():
        found[place] |= {("machine", host) for host in sorted(hosts)[:MOST_MACHINES]}
    return found


def count_models_by_trait(*, project_id: int, since_minute: int) -> dict[Trait, int]:
    """Return the number of models with live instances per GPU type, driver and torch release; one
    query."""
    found: dict[Trait, set[int]] = {}
    rows = _filter_live(since_minute).filter(project_id=project_id)
    for model, *plain in rows.values_list("model_id", *_PLAIN).distinct():
        for trait in _list_traits(plain):
            found.setdefault(trait, set()).add(model)
    return {trait: len(models) for trait, models in found.items()}


def _filter_live(since_minute: int) -> QuerySet[Instance]:
    rows = Instance.objects.filter(last_minute__gte=since_minute - LIVE_MINUTES).exclude(
        instance_id__startswith=OTHER_INSTANCE_PREFIX
    )
    return rows.annotate(driver=KeyTextTransform("driver", "identity"))


_PLAIN = ("gpu", "driver", "torch")


def _list_traits(plain: Collection[Any]) -> set[Trait]:
    return {(kind, str(name)[:100]) for kind, name in zip(PLAIN, plain, strict=True) if name}
