"""Compile cost: GPU-seconds of compilations, cache misses and eager calls, by model and day.

Each second is in one class. GPU-seconds are seconds times the GPUs that the process holds; a
process without a GPU costs none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

COMPILING, EAGER, MISSES = "compiling", "eager", "cache misses"
CLASSES = (COMPILING, EAGER, MISSES)


class CompileHours(NamedTuple):
    """Seconds of compilation of a version on a GPU type on one day."""

    version_id: int
    gpu: str
    day: int
    seconds: float


class MissSeconds(NamedTuple):
    """Seconds of compilations on one day that an earlier start had done, by GPU type."""

    version_id: int
    gpu: str
    day: int
    seconds: float


class CallDay(NamedTuple):
    """Calls of one series on one day. `observed` of the calls have a known mode, `eager` of these
    ran eager; the seconds of calls without eager ones are `seconds` of `timed` calls."""

    version_id: int
    gpu: str
    place: tuple[str, str]
    """Region and bucket."""
    on_purpose: bool
    """Whether the whole series runs eager."""
    day: int
    calls: int
    observed: int
    eager: int
    seconds: float
    timed: int


@dataclass
class ModelCost:
    """GPU-seconds of one model by class and day. `unknown_eager`: calls ran eager, and the time of
    an eager or a compiled call is not known."""

    by_class: dict[str, dict[int, float]] = field(
        default_factory=lambda: {name: defaultdict(float) for name in CLASSES}
    )
    unknown_eager: int = 0

    def total(self, first_day: int, name: str = "") -> float:
        """GPU-seconds since a day, of one class or of all."""
        names = (name,) if name else CLASSES
        return sum(
            seconds
            for one in names
            for day, seconds in self.by_class[one].items()
            if day >= first_day
        )


def add_costs(
    *,
    model_of: Mapping[int, int],
    gpus_of: Mapping[tuple[int, str], int],
    compiled: Iterable[CompileHours],
    missed: Iterable[MissSeconds],
    calls: Iterable[CallDay],
) -> dict[int, ModelCost]:
    """The costs by model. A cache miss is part of the seconds of compilation, so that it reduces
    the rest."""
    found: dict[int, ModelCost] = defaultdict(ModelCost)
    lost: dict[tuple[int, str, int], float] = defaultdict(float)
    for miss in missed:
        lost[miss.version_id, miss.gpu, miss.day] += miss.seconds
    for one in compiled:
        gpus = gpus_of.get((one.version_id, one.gpu), 1 if one.gpu else 0)
        cost = found[model_of[one.version_id]].by_class if one.version_id in model_of else None
        if cost is None or not gpus:
            continue
        again = min(lost[one.version_id, one.gpu, one.day], one.seconds)
        cost[MISSES][one.day] += again * gpus
        cost[COMPILING][one.day] += (one.seconds - again) * gpus
    _add_eager(found, model_of, gpus_of, list(calls))
    return dict(found)


def _add_eager(
    found: dict[int, ModelCost],
    model_of: Mapping[int, int],
    gpus_of: Mapping[tuple[int, str], int],
    calls: list[CallDay],
) -> None:
    """Calls run eager, times the time that an eager call takes longer than a compiled one."""
    eager_s = _mean_seconds(calls, model_of, on_purpose=True)
    compiled_s = _mean_seconds(calls, model_of, on_purpose=False)
    for one in calls:
        gpus = gpus_of.get((one.version_id, one.gpu), 1 if one.gpu else 0)
        if one.on_purpose or not one.eager or not gpus or one.version_id not in model_of:
            continue
        model = model_of[one.version_id]
        count = one.calls * one.eager / one.observed if one.observed else 0.0
        place = (model, one.gpu, one.place)
        if place not in eager_s or place not in compiled_s:
            found[model].unknown_eager += round(count)
            continue
        longer = max(eager_s[place] - compiled_s[place], 0.0)
        found[model].by_class[EAGER][one.day] += count * longer * gpus


def _mean_seconds(
    calls: Iterable[CallDay], model_of: Mapping[int, int], *, on_purpose: bool
) -> dict[tuple[int, str, tuple[str, str]], float]:
    """Mean call time by model, GPU type, region and bucket."""
    sums: dict[tuple[int, str, tuple[str, str]], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in calls:
        if one.on_purpose == on_purpose and one.timed and one.version_id in model_of:
            total = sums[model_of[one.version_id], one.gpu, one.place]
            total[0] += one.seconds
            total[1] += one.timed
    return {key: seconds / timed for key, (seconds, timed) in sums.items()}
