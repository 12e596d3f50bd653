"""Judges a version against its baseline: minutes of instances in, a verdict with its evidence out;
pure, no Django."""

from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.evaluate import evaluate_comparison, judge
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute, InstanceStart
from dashboard.regressions.judge.result import Evidence, JudgeContext, Outcome
from dashboard.regressions.judge.settings import PRODUCTION, AffectedMetric, RatioMetric, Settings

__all__ = [
    "PRODUCTION",
    "AffectedMetric",
    "Comparison",
    "Evidence",
    "InstanceMinute",
    "InstanceProcessMinute",
    "InstanceStart",
    "JudgeContext",
    "Outcome",
    "RatioMetric",
    "Settings",
    "evaluate_comparison",
    "judge",
]
