"""Tries settings on the last days before they hold: bounded work, one trial at a time, and what was left out is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from dashboard.common import clock
from dashboard.regressions.backtest import Rejudged, deployments_rejudge
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.settings_overrides import Value, layered
from dashboard.regressions.settings_resolver import SettingsBook
from dashboard.ui.selectors.judging import JudgingFacts

DAYS = 8
HOURS_EACH = 24
SECONDS = 4.0
"""A trial takes the processor from the pages: no further deployment is begun after so long."""

_one_at_a_time = Lock()


@dataclass(frozen=True)
class Trial:
    """What the settings in the fields would have said; `found` is None while another trial runs."""

    found: Rejudged | None
    days: int = DAYS
    hours_each: int = HOURS_EACH


def settings_tried(*, facts: JudgingFacts, values: dict[str, Value]) -> Callable[[int], Settings]:
    """The settings of a model's id if these values were saved on this page."""
    project_id = facts.project.pk
    book = SettingsBook(project_id=project_id)

    def of(model_id: int) -> Settings:
        if facts.model is not None:
            return book.tried(project_id=project_id, overrides=layered(facts.of_project, values))
        own = book.overrides(project_id=project_id, model_id=model_id)
        return book.tried(project_id=project_id, overrides=layered(values, own))

    return of


def trial_run(*, facts: JudgingFacts, values: dict[str, Value]) -> Trial:
    """Judges the first day of what was deployed in the last days."""
    if not _one_at_a_time.acquire(blocking=False):
        return Trial(None)
    try:
        found = deployments_rejudge(
            project=facts.project,
            since_minute=clock.minute_of(clock.unix()) - DAYS * 1440,
            settings_of=settings_tried(facts=facts, values=values),
            model=facts.model,
            seconds=SECONDS,
            minutes=HOURS_EACH * 60,
        )
    finally:
        _one_at_a_time.release()
    return Trial(found)
