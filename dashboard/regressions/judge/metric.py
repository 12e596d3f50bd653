"""Metric: the base class of all judged metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Fields of every judged metric. A hard metric can raise ROLL BACK alone; a muted one is only
    shown.

    `leads` marks call time, the reference for missing data, mix shifts and the next step.
    `watch_minutes` replaces the setting of that name where a burst must not be enough. `only_with`
    names a value that a region must report before the metric is evaluated. `follows` names the
    metrics that explain this one. `weight` is the part of the error budget: see `error_budget`.
    """

    name: str
    unit: str
    hard: bool = True
    leads: bool = False
    only_with: Literal["", "gpu", "items", "stalled"] = ""
    follows: tuple[str, ...] = ()
    hold_minutes: int = 10
    watch_minutes: int | None = None
    muted: bool = False
    weight: float = 1.0
