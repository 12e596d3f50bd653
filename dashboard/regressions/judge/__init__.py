"""Judges a version against its baseline: minutes of instances in, a verdict with its evidence out; pure, no Django."""

from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.judge import judge, outcome_of
from dashboard.regressions.judge.minutes import InstanceMinute
from dashboard.regressions.judge.outcome import Evidence, Known, Outcome
from dashboard.regressions.judge.settings import PRODUCTION, Affected, Ratio, Settings
from dashboard.regressions.judge.states import InstanceStart, InstanceState

__all__ = [
    "PRODUCTION",
    "Affected",
    "Comparison",
    "Evidence",
    "InstanceMinute",
    "InstanceStart",
    "InstanceState",
    "Known",
    "Outcome",
    "Ratio",
    "Settings",
    "judge",
    "outcome_of",
]
