"""Severity: the verdicts in order of urgency, and the labels of a metric in order of weight."""

from __future__ import annotations

ROLL_BACK, WATCH = "roll_back", "watch"
NOT_ENOUGH_DATA, HEALTHY = "not_enough_data", "healthy"

VERDICTS_BY_URGENCY = (ROLL_BACK, WATCH, NOT_ENOUGH_DATA, HEALTHY)
"""The verdict that a person looks at first comes first."""
VERDICTS_BY_CLAIM = (NOT_ENOUGH_DATA, HEALTHY, WATCH, ROLL_BACK)
"""From the verdict that claims least to the verdict that asks most."""
ALERTING_VERDICTS = (ROLL_BACK, WATCH)
"""Verdicts that open an alert, the worst first."""

REGRESSED, IMPROVED = "REGRESSED", "IMPROVED"
NO_CHANGE, NO_ANSWER = "NO CHANGE", "NOT ENOUGH DATA"
LABELS = (REGRESSED, IMPROVED, NO_CHANGE, NO_ANSWER)
"""Labels of one metric, the one that weighs most first."""


def rank_severity(verdict: str) -> int:
    """2 of ROLL BACK, 1 of WATCH, 0 of a verdict that opens no alert."""
    if verdict not in ALERTING_VERDICTS:
        return 0
    return len(ALERTING_VERDICTS) - ALERTING_VERDICTS.index(verdict)


def order_by_urgency(verdict: str) -> int:
    """The place of a verdict among those that a person looks at; an unknown one comes last."""
    if verdict not in VERDICTS_BY_URGENCY:
        return len(VERDICTS_BY_URGENCY)
    return VERDICTS_BY_URGENCY.index(verdict)


def order_by_label(label: str) -> int:
    """The place of a label; an unknown one comes last."""
    return LABELS.index(label) if label in LABELS else len(LABELS)
