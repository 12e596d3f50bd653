"""Deterministic facts: facts of instances that need no statistics, and the instances'
environments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import Q

from dashboard.common import clock
from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.metrics.eager_causes import cause_sentence
from dashboard.fleet.models import Deployment, Instance
from dashboard.fleet.selectors.instances.instance_states import (
    UNUSUAL_AFTER_S,
    compute_hung_limit_s,
)

LIVE_MINUTES = 30
"""Minutes after which an instance without reports has no facts."""
IDENTITY_TRAITS = ("gpu_count", "driver", "cuda", "triton", "python")
MAX_VALUE_CHARS = 100


class CertainRow(NamedTuple):
    """One fact of one instance; `about` is a frame, `why` the agent's text."""

    kind: str
    instance: str
    since: int
    about: str
    why: str


def list_certain_instances(*, deployment: Deployment, now_minute: int) -> list[Instance]:
    """Return the recently reporting instances that may have facts, alone or as ranks of a job; one
    query."""
    live = Instance.objects.filter(
        version_id=deployment.version_id,
        environment=deployment.environment,
        last_minute__gte=now_minute - LIVE_MINUTES,
    ).exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
    rows = live.filter(
        ~Q(latched_eager=[]) | Q(compiling_for__gt=UNUSUAL_AFTER_S) | Q(world_size__gt=1)
    )
    return list(rows.defer("identity", "capabilities"))


def read_certain_rows(*, instances: Iterable[Instance]) -> list[CertainRow]:
    """Return the facts of those instances: eager fallbacks and stuck compilations."""
    found: list[CertainRow] = []
    for row in instances:
        found += [
            _make_fallback_row(row, item) for item in row.latched_eager if isinstance(item, dict)
        ]
        if row.compiling_for > compute_hung_limit_s(row):
            since = row.last_minute - int(row.compiling_for // 60)
            found.append(
                CertainRow(
                    "stuck_compiling",
                    row.instance_id,
                    since,
                    row.compiling_frame,
                    "far longer than its longest compilation so far",
                )
            )
    return found


def _make_fallback_row(row: Instance, item: Mapping[str, Any]) -> CertainRow:
    at = item.get("at")
    since = (
        clock.minute_of(at)
        if isinstance(at, int | float) and not isinstance(at, bool)
        else row.first_minute
    )
    cause = str(item.get("cause") or "limit")
    why = cause_sentence(cause, "it") or cause.replace("_", " ")
    guard = str(item.get("reason") or "")[:MAX_VALUE_CHARS]
    why += f" (guard: {guard})" if guard else ""
    return CertainRow("latched_eager", row.instance_id, since, str(item.get("frame") or ""), why)


def read_environments(
    *, deployment: Deployment, instances: Collection[str]
) -> list[dict[str, str]]:
    """Return the runtime and configuration of each instance: names, versions and hashes; one
    query."""
    rows = Instance.objects.filter(
        version_id=deployment.version_id,
        environment=deployment.environment,
        instance_id__in=instances,
    )
    return [
        _environment({"gpu": gpu, "torch": torch, "world_size": str(size)}, identity, components)
        for gpu, torch, size, identity, components in rows.values_list(
            "gpu", "torch", "world_size", "identity", "components"
        )
    ]


def _environment(known: dict[str, str], identity: Any, components: Any) -> dict[str, str]:
    for key in IDENTITY_TRAITS:
        value = identity.get(key) if isinstance(identity, dict) else None
        if value:
            known[key] = str(value)[:MAX_VALUE_CHARS]
    for key, value in components.items() if isinstance(components, dict) else ():
        known.setdefault(str(key)[:MAX_VALUE_CHARS], str(value)[:MAX_VALUE_CHARS])
    return known
