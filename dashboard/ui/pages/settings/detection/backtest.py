"""Backtest of settings on the last days: bounded work, one backtest at a time, with a count of
skipped deployments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from dashboard.common import clock
from dashboard.regressions.backtest import BacktestResult, backtest_deployments
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.settings_overrides import Value
from dashboard.regressions.settings_resolver import SettingsResolver
from dashboard.ui.pages.settings.detection.queries import DetectionData

BACKTEST_DAYS = 8
HOURS_EACH = 24
TIME_BUDGET_S = 4.0
"""Time limit in seconds, because a backtest takes CPU from the pages: no further deployment starts
after it."""

_lock = Lock()


@dataclass(frozen=True)
class Backtest:
    """Verdicts with the settings of the form; `found` is None while another backtest runs."""

    found: BacktestResult | None
    days: int = BACKTEST_DAYS
    hours_each: int = HOURS_EACH


def build_settings_lookup(
    *, facts: DetectionData, values: dict[str, Value]
) -> Callable[[int], Settings]:
    """A lookup of a model's settings as if the values were saved."""
    book = SettingsResolver(project_id=facts.project.pk)
    return lambda model_id: book.resolve_edited(
        project_id=facts.project.pk,
        edited_model_id=facts.model.pk if facts.model else None,
        values=values,
        model_id=model_id,
    )


def run_backtest(*, facts: DetectionData, values: dict[str, Value]) -> Backtest:
    """Evaluates the first day of each recent deployment."""
    if not _lock.acquire(blocking=False):
        return Backtest(None)
    try:
        found = backtest_deployments(
            project=facts.project,
            since_minute=clock.minute_of(clock.unix()) - BACKTEST_DAYS * 1440,
            settings_of=build_settings_lookup(facts=facts, values=values),
            model=facts.model,
            seconds=TIME_BUDGET_S,
            minutes=HOURS_EACH * 60,
        )
    finally:
        _lock.release()
    return Backtest(found)
