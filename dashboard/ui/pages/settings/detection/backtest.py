"""Card of the Detection page: the verdicts of the last days that other settings would change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from dashboard.regressions.settings_backtest import BACKTEST_DAYS, HOURS_EACH
from dashboard.ui.pages.settings.detection.measured_settings import list_differing
from dashboard.ui.pages.settings.detection.queries import DetectionData
from dashboard.vocabulary import numbers

State = Literal["none", "computing", "done"]


@dataclass(frozen=True)
class BacktestCard:
    """All data of the card. `changes` are the deployments whose verdict changes, newest first."""

    state: State
    at: datetime | None = None
    by: str = ""
    progress: str = ""
    changes: list[Mapping[str, Any]] = field(default_factory=list)
    evaluated: int = 0
    skipped: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    days: int = BACKTEST_DAYS
    hours_each: int = HOURS_EACH


def build_backtest_card(facts: DetectionData) -> BacktestCard:
    """The card of the newest backtest of the project or of the model."""
    backtest = facts.backtest
    if backtest is None:
        return BacktestCard("none")
    total = None if backtest.deployments is None else len(backtest.deployments)
    progress = (
        "Waiting for a worker."
        if total is None
        else f"{backtest.done} of {numbers.plural(total, 'deployment')} evaluated."
    )
    return BacktestCard(
        "computing" if backtest.finished_at is None else "done",
        at=backtest.finished_at or backtest.requested_at,
        by=backtest.requested_by_name,
        progress=progress,
        changes=backtest.changes,
        evaluated=backtest.evaluated,
        skipped=[
            f"{numbers.plural(count, 'deployment')}: {reason}"
            for reason, count in sorted(backtest.left_out.items())
        ],
        differing=list_differing(backtest.values, facts),
    )
