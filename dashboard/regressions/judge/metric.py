"""What every judged metric has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What every judged metric has; a hard one can ask for a roll back by itself, a muted one is
    only shown.

    `leads` marks how long a call takes: what is missing, what a mix of shapes does and the next
    step are told of it. `watch_minutes` replaces the setting of that name where a burst must not be
    enough. `only_with` names what a region must report before the metric is looked at, `follows`
    the metrics that explain it.
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
