"""What every judged metric has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What every judged metric has; a hard one can ask for a roll back by itself, a muted one is only shown."""

    name: str
    unit: str
    hard: bool = True
    hold_minutes: int = 10
    muted: bool = False
