"""Count text: describes shares of calls with the counts behind them, and rates per hour."""

from __future__ import annotations

from dashboard.fleet.metrics.eager_causes import cause_sentence
from dashboard.regressions.judge.result import Evidence
from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.numbers import count_share, number, percent

OF_CALLS = "of calls "


def count_phrase(row: Evidence) -> str:
    """`1 of 88 calls (1.1%) fail`: the share of calls that a count covers, or its rate per hour."""
    value = row.candidate or 0.0
    predicate = find_metric(row.metric).predicate or f"of calls: {row.metric}"
    if row.unit == "per hour":
        return f"{number(value)} {predicate}"
    counted = count_share(row.candidate_events, row.candidate_calls, value, "calls")
    if counted and predicate.startswith(OF_CALLS):
        return f"{counted} {predicate.removeprefix(OF_CALLS)}"
    return f"{percent(value)} {predicate}"


def baseline_phrase(row: Evidence, baseline: str) -> str:
    """The baseline's share or rate of the same count."""
    if not row.baseline:
        of = f" of {number(row.baseline_calls)}" if row.baseline_calls else ""
        return f"none{of} on {baseline}"
    if row.unit == "per hour":
        return f"{number(row.baseline)} on {baseline}"
    counted = count_share(row.baseline_events, row.baseline_calls, row.baseline)
    return f"{counted or percent(row.baseline)} on {baseline}"


def find_main_cause(row: Evidence) -> str | None:
    """The most frequent cause in the agents' counts; an unknown cause is not guessed."""
    return next(
        (said for cause in row.causes if (said := cause_sentence(cause, f"`{row.region}`"))), None
    )
