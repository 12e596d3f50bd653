"""What is configured differently on the two sides, and which of it can explain a change in compiling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.fleet.selectors.instances import Configuration

OWN = frozenset(
    {
        "id",
        "started",
        "model",
        "version",
        "host",
        "pid",
        "rank",
        "job",
        "capabilities",
        "components",
        "simulated",
        "instance",
        "environment",
        "ready",
    }
)
"""Keys that differ between any two instances and say nothing about the version."""
EXPLAINS = (
    "mode",
    "dynamic",
    "inductor",
    "dynamo",
    "triton",
    "torch",
    "cuda",
    "source",
    "graph",
    "backend",
    "compile",
    "fullgraph",
    "gpu",
    "driver",
)
VALUES_SHOWN = 3


@dataclass(frozen=True)
class Difference:
    """One key; values are the agent's and are only ever escaped."""

    key: str
    baseline: str
    candidate: str
    explains: bool


@dataclass(frozen=True)
class Configured:
    """The differences, and how many keys were looked at."""

    differences: list[Difference]
    keys: int


def configuration_compared(rows: Iterable[Configuration], baseline: int, candidate: int) -> Configured:
    """Every key whose set of values is not the same on both sides."""
    sides: dict[int, dict[str, Counter[str]]] = {baseline: {}, candidate: {}}
    for version, identity, components in rows:
        if version in sides:
            for key, value in _flat(identity, components):
                sides[version].setdefault(key, Counter())[value] += 1
    keys = sorted(set(sides[baseline]) | set(sides[candidate]))
    found = [
        Difference(key, _said(sides[baseline].get(key)), _said(sides[candidate].get(key)), any(part in key.lower() for part in EXPLAINS))
        for key in keys
        if set(sides[baseline].get(key) or ()) != set(sides[candidate].get(key) or ())
    ]
    return Configured(sorted(found, key=lambda one: (not one.explains, one.key)), len(keys))


def _flat(identity: Any, components: Any) -> Iterable[tuple[str, str]]:
    for source in (identity, components):
        if isinstance(source, Mapping):
            for key, value in source.items():
                if key not in OWN and isinstance(value, str | int | float | bool):
                    yield str(key), str(value)


def _said(values: Counter[str] | None) -> str:
    if not values:
        return "unset"
    ordered = sorted(values, key=lambda value: (-values[value], value))
    more = f" and {len(ordered) - VALUES_SHOWN} more" if len(ordered) > VALUES_SHOWN else ""
    return ", ".join(value or "empty" for value in ordered[:VALUES_SHOWN]) + more
