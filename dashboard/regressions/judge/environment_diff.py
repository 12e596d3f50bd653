"""Environment diff: differences between two versions in machines, libraries and configuration,
compared as multisets over instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compilewatch.wire.cache_miss_causes import ACCESS, ENVIRONMENT, FOLDER, KERNELS_FOLDER, OPTIONS
from compilewatch.wire.messages import KERNEL

MIN_SHARE_SHIFT = 0.10
"""Minimum difference in the share of instances that counts as a difference, if both sides have the
same values."""
FIRST_KEYS = (
    "gpu",
    "gpu_count",
    "world_size",
    "driver",
    "cuda",
    "torch",
    "triton",
    "python",
    "agent",
)
"""Keys that are listed first; the others follow by name."""


KEYS_OF_EVERY_PROCESS = (
    "torch",
    "agent",
    "driver",
    "cuda",
    "triton",
    "python",
    "gpu_count",
    "gpu count",
    "compile caches",
    "shapes",
    FOLDER,
    KERNELS_FOLDER,
    ACCESS,
)
"""Keys that every process has. An absent key means that the agent did not report it."""
_PLACES = (FOLDER, ACCESS)
_SETTINGS = (ENVIRONMENT, *(f"{module} " for module in OPTIONS))


def read_value(instance: Mapping[str, str], key: str) -> str | None:
    """The value of an instance: empty if not set, None if its agent does not report it. An older
    agent reports no components."""
    if key in instance:
        return instance[key]
    if key in KEYS_OF_EVERY_PROCESS or (
        key.startswith(_SETTINGS)
        and not any(name in _PLACES or name.startswith(_SETTINGS) for name in instance)
    ):
        return None
    return ""


@dataclass(frozen=True, slots=True)
class Difference:
    """One key with the number of instances per value, most frequent first. An empty value means not
    set."""

    key: str
    baseline: tuple[tuple[str, int], ...]
    candidate: tuple[tuple[str, int], ...]


def diff_environments(
    baseline: Sequence[Mapping[str, str]], candidate: Sequence[Mapping[str, str]]
) -> tuple[Difference, ...]:
    """Every key whose values or shares differ; empty if one side has no instance."""
    if not baseline or not candidate:
        return ()
    keys = {key for instance in (*baseline, *candidate) for key in instance}
    found = []
    for key in sorted(
        keys, key=lambda key: (FIRST_KEYS.index(key) if key in FIRST_KEYS else len(FIRST_KEYS), key)
    ):
        before, after = (Counter(_values(key, side)) for side in (baseline, candidate))
        if not before or not after:
            continue
        if set(before) != set(after) or has_shifted(before, after):
            found.append(Difference(key, count_values(before), count_values(after)))
    return tuple(found)


def _values(key: str, side: Sequence[Mapping[str, str]]) -> list[str]:
    """The values of the instances. For kernels, only instances that have chosen one: an instance
    without the shape has not chosen another kernel."""
    if key.startswith(KERNEL):
        return [instance[key] for instance in side if key in instance]
    return [value for instance in side if (value := read_value(instance, key)) is not None]


def has_shifted(before: Counter[str], after: Counter[str]) -> bool:
    """True if the share of instances of a value differs by at least the reported minimum."""
    first, second = before.total(), after.total()
    return any(
        abs(before[value] / first - after[value] / second) >= MIN_SHARE_SHIFT for value in before
    )


def count_values(values: Counter[str]) -> tuple[tuple[str, int], ...]:
    """Most frequent first; ties by name, so that their order carries no information."""
    return tuple(sorted(values.items(), key=lambda item: (-item[1], item[0])))
