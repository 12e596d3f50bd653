"""Judges a version against its baseline: minutes of instances in, a verdict with its evidence out; pure, no Django."""

from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.evaluate import judge, outcome_of
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.process.inputs import InstanceStart, InstanceState
from dashboard.regressions.judge.result import Evidence, Known, Outcome
from dashboard.regressions.judge.settings import PRODUCTION, Affected, Ratio, Settings

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
