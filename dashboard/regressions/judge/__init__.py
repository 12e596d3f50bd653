"""Judge: compares a version with its baseline. Takes minutes of instances and returns a verdict
with its evidence. Pure code without Django."""

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
