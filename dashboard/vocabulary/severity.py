"""Severity: verdicts by urgency, and labels of a metric by weight."""

from __future__ import annotations

ROLL_BACK, WATCH = "roll_back", "watch"
NOT_ENOUGH_DATA, HEALTHY = "not_enough_data", "healthy"

VERDICTS_BY_URGENCY = (ROLL_BACK, WATCH, NOT_ENOUGH_DATA, HEALTHY)
"""The most urgent verdict first."""
VERDICTS_BY_CLAIM = (NOT_ENOUGH_DATA, HEALTHY, WATCH, ROLL_BACK)
"""From the verdict that claims least to the verdict that asks most."""
ALERTING_VERDICTS = (ROLL_BACK, WATCH)
"""Verdicts that open an alert, the worst first."""

REGRESSED, IMPROVED = "REGRESSED", "IMPROVED"
NO_CHANGE, NO_ANSWER = "NO CHANGE", "NOT ENOUGH DATA"
LABELS = (REGRESSED, IMPROVED, NO_CHANGE, NO_ANSWER)
"""Labels of one metric, the heaviest first."""


def rank_severity(verdict: str) -> int:
    """2 for ROLL BACK, 1 for WATCH, 0 for a verdict that opens no alert."""
    if verdict not in ALERTING_VERDICTS:
        return 0
    return len(ALERTING_VERDICTS) - ALERTING_VERDICTS.index(verdict)


def order_by_urgency(verdict: str) -> int:
    """The rank of a verdict by urgency; an unknown verdict ranks last."""
    if verdict not in VERDICTS_BY_URGENCY:
        return len(VERDICTS_BY_URGENCY)
    return VERDICTS_BY_URGENCY.index(verdict)


def order_by_label(label: str) -> int:
    """The rank of a label; an unknown label ranks last."""
    return LABELS.index(label) if label in LABELS else len(LABELS)
