"""What else differs between two versions: the machines, libraries and configuration of their instances, as two multisets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compilewatch.wire.cache_miss_causes import ACCESS, ENVIRONMENT, FOLDER, KERNELS_FOLDER, OPTIONS
from compilewatch.wire.messages import KERNEL

SHIFTED = 0.10
"""Where both sides have the same values, a share of instances that differs by so much is a difference too."""
FIRST = ("gpu", "gpu_count", "world_size", "driver", "cuda", "torch", "triton", "python", "agent")
"""What is told first; the rest follows by name."""


ALWAYS = (
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


def told(instance: Mapping[str, str], key: str) -> str | None:
    """The value that an instance has, empty where it is not set; None where its agent does not tell: an older one knows no components."""
    if key in instance:
        return instance[key]
    if key in ALWAYS or (key.startswith(_SETTINGS) and not any(name in _PLACES or name.startswith(_SETTINGS) for name in instance)):
        return None
    return ""


@dataclass(frozen=True, slots=True)
class Difference:
    """One key with the instances that have each value, most frequent first; an empty value is not set."""

    key: str
    baseline: tuple[tuple[str, int], ...]
    candidate: tuple[tuple[str, int], ...]


def environment_diff(baseline: Sequence[Mapping[str, str]], candidate: Sequence[Mapping[str, str]]) -> tuple[Difference, ...]:
    """Every key whose values are not the same, or not in the same shares; nothing where one side has no instance."""
    if not baseline or not candidate:
        return ()
    keys = {key for instance in (*baseline, *candidate) for key in instance}
    found = []
    for key in sorted(keys, key=lambda key: (FIRST.index(key) if key in FIRST else len(FIRST), key)):
        before, after = (Counter(_values(key, side)) for side in (baseline, candidate))
        if not before or not after:
            continue
        if set(before) != set(after) or shifted(before, after):
            found.append(Difference(key, counted(before), counted(after)))
    return tuple(found)


def _values(key: str, side: Sequence[Mapping[str, str]]) -> list[str]:
    """What the instances have; of kernels, those that have chosen one: an instance that has not met a shape yet chose nothing else."""
    if key.startswith(KERNEL):
        return [instance[key] for instance in side if key in instance]
    return [value for instance in side if (value := told(instance, key)) is not None]


def shifted(before: Counter[str], after: Counter[str]) -> bool:
    """Whether a value has another share of the instances, by as much as is told."""
    first, second = before.total(), after.total()
    return any(abs(before[value] / first - after[value] / second) >= SHIFTED for value in before)


def counted(values: Counter[str]) -> tuple[tuple[str, int], ...]:
    """Most frequent first; equal ones by name, so that their order says nothing."""
    return tuple(sorted(values.items(), key=lambda item: (-item[1], item[0])))
