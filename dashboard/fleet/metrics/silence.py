"""Silence: detects that most instances of a model or fleet stopped reporting together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

GROUP_SPAN_S = 300.0
"""Maximum seconds between the last reports of instances in one silent group."""
MIN_SILENT = 2
MIN_SILENT_SHARE = 0.5
"""Silence requires a larger share of silent instances than this."""


@dataclass(frozen=True, slots=True)
class InstanceSpan:
    """Instance without a reported end: its start and last report, in Unix seconds."""

    model: int
    started: float
    seen: float
    silent: bool


@dataclass(frozen=True, slots=True)
class Silence:
    """Number of silent instances and of all instances then running. `first` and `last` bound the
    last reports, in Unix seconds."""

    silent: int
    of: int
    first: float
    last: float
    models: tuple[int, ...]


def find_silence(lives: Sequence[InstanceSpan]) -> Silence | None:
    """Return the largest group of instances that stopped together, if it exceeds half of those
    running.

    None otherwise. A process that started as another of its model stopped replaces it: a rollout is
    not a silence.
    """
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
    """Return the largest group whose last reports lie within GROUP_SPAN_S; of equal groups, the
    newer one."""
    best, begin = (0, 0), 0
    for end, one in enumerate(silent, start=1):
        while one.seen - silent[begin].seen > GROUP_SPAN_S:
            begin += 1
        if end - begin >= best[1] - best[0]:
            best = begin, end
    return silent[slice(*best)]
