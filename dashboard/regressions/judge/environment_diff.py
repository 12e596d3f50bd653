"""What else differs between two versions: the machines, libraries and configuration of their
instances, as two multisets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compilewatch.wire.cache_miss_causes import ACCESS, ENVIRONMENT, FOLDER, KERNELS_FOLDER, OPTIONS
from compilewatch.wire.messages import KERNEL

MIN_SHARE_SHIFT = 0.10
"""Where both sides have the same values, a share of instances that differs by so much is a
difference too."""
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
"""What is told first; the rest follows by name."""


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
"""What every process has: where it is absent, the agent did not tell it."""
_PLACES = (FOLDER, ACCESS)
_SETTINGS = (ENVIRONMENT, *(f"{module} " for module in OPTIONS))


def read_value(instance: Mapping[str, str], key: str) -> str | None:
    """The value that an instance has, empty where it is not set; None where its agent does not
    tell: an older one knows no components."""
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
    """One key with the instances that have each value, most frequent first; an empty value is not
    set."""

    key: str
    baseline: tuple[tuple[str, int], ...]
    candidate: tuple[tuple[str, int], ...]


def diff_environments(
    baseline: Sequence[Mapping[str, str]], candidate: Sequence[Mapping[str, str]]
) -> tuple[Difference, ...]:
    """Every key whose values are not the same, or not in the same shares; nothing where one side
    has no instance."""
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
    """What the instances have; of kernels, those that have chosen one: an instance that has not met
    a shape yet chose nothing else."""
    if key.startswith(KERNEL):
        return [instance[key] for instance in side if key in instance]
    return [value for instance in side if (value := read_value(instance, key)) is not None]


def has_shifted(before: Counter[str], after: Counter[str]) -> bool:
    """Whether a value has another share of the instances, by as much as is told."""
    first, second = before.total(), after.total()
    return any(
        abs(before[value] / first - after[value] / second) >= MIN_SHARE_SHIFT for value in before
    )


def count_values(values: Counter[str]) -> tuple[tuple[str, int], ...]:
    """Most frequent first; equal ones by name, so that their order says nothing."""
    return tuple(sorted(values.items(), key=lambda item: (-item[1], item[0])))
