"""Configuration differences of two versions, and those that can explain a change in compilation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.fleet.selectors.instances.instances import Configuration
from dashboard.regressions.judge.environment_diff import diff_environments

IDENTITY_KEYS = frozenset(
    {
        "id",
        "started",
        "model",
        "version",
        "host",
        "node",
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
"""Keys that differ between any two instances, independent of the version."""
EXPLAINING_KEYS = (
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
    """One key; the values come from the agent and are always escaped."""

    key: str
    baseline: str
    candidate: str
    explains: bool


@dataclass(frozen=True)
class ConfigurationDiff:
    """The differences and the number of compared keys."""

    differences: list[Difference]
    keys: int


def compare_configurations(
    rows: Iterable[Configuration], baseline: int, candidate: int
) -> ConfigurationDiff:
    """Every key whose values, or their shares of the instances, differ between the two sides."""
    sides: dict[int, list[dict[str, str]]] = {baseline: [], candidate: []}
    for version, identity, components in rows:
        if version in sides:
            sides[version].append(dict(_flat(identity, components)))
    keys = {key for side in sides.values() for instance in side for key in instance}
    found = [
        Difference(
            one.key,
            format_values(one.baseline),
            format_values(one.candidate),
            any(part in one.key.lower() for part in EXPLAINING_KEYS),
        )
        for one in diff_environments(sides[baseline], sides[candidate])
    ]
    return ConfigurationDiff(sorted(found, key=lambda one: (not one.explains, one.key)), len(keys))


def format_values(values: Any) -> str:
    """Values with their number of instances, most frequent first; a value of all instances has no
    number."""
    told = (
        [(str(value) or "unset", count) for value, count in values]
        if isinstance(values, list | tuple)
        else []
    )
    if len(told) <= 1:
        return told[0][0] if told else "unset"
    more = f" and {len(told) - VALUES_SHOWN} more" if len(told) > VALUES_SHOWN else ""
    return ", ".join(f"{value} × {count}" for value, count in told[:VALUES_SHOWN]) + more


def _flat(identity: Any, components: Any) -> Iterable[tuple[str, str]]:
    for source in (identity, components):
        if isinstance(source, Mapping):
            for key, value in source.items():
                if key not in IDENTITY_KEYS and isinstance(value, str | int | float | bool):
                    yield str(key), str(value)
