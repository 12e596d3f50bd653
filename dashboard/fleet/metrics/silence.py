"""Whether most instances of a model or of a fleet stopped reporting together; it knows no database
and no clock."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

GROUP_SPAN_S = 300.0
"""Seconds between the first and the last of the last reports of instances that fell silent
together."""
MIN_SILENT = 2
MIN_SILENT_SHARE = 0.5
"""More than this part of the instances has to be silent."""


@dataclass(frozen=True, slots=True)
class InstanceSpan:
    """A process that counts as an instance and did not report its end: when it started and last
    reported, in Unix seconds."""

    model: int
    started: float
    seen: float
    silent: bool


@dataclass(frozen=True, slots=True)
class Silence:
    """How many instances stopped reporting, of how many that ran then, and when the first and the
    last of them last reported."""

    silent: int
    of: int
    first: float
    last: float
    models: tuple[int, ...]


def find_silence(lives: Sequence[InstanceSpan]) -> Silence | None:
    """The largest group that fell silent together, where it is more than half of what ran; None
    where it is not.

    A process that started as another of its model stopped takes the place of that one: a rollout is
    no silence."""
    group = _find_largest_group(
        sorted((one for one in lives if one.silent), key=lambda one: one.seen)
    )
    if len(group) < MIN_SILENT:
        return None
    first, last = group[0].seen, group[-1].seen
    reporting = [one for one in lives if not one.silent]
    gone, newest = (
        Counter(one.model for one in group),
        {one.model: one.started for one in sorted(group, key=lambda one: one.started)},
    )
    new = Counter(
        one.model
        for one in reporting
        if one.started > newest.get(one.model, math.inf) and one.started >= first - GROUP_SPAN_S
    )
    lost = {model: count - new[model] for model, count in gone.items() if count > new[model]}
    ran = len(group) + len(reporting) - sum(min(count, new[model]) for model, count in gone.items())
    silent = sum(lost.values())
    if silent < MIN_SILENT or silent <= MIN_SILENT_SHARE * ran:
        return None
    return Silence(silent, ran, first, last, tuple(sorted(lost)))


def _find_largest_group(silent: Sequence[InstanceSpan]) -> Sequence[InstanceSpan]:
    """The most that last reported within TOGETHER; of two groups of one size the newer."""
    best, begin = (0, 0), 0
    for end, one in enumerate(silent, start=1):
        while one.seen - silent[begin].seen > GROUP_SPAN_S:
            begin += 1
        if end - begin >= best[1] - best[0]:
            best = begin, end
    return silent[slice(*best)]
