"""Judges a version against its baseline: minutes of instances in, a verdict with its evidence out; pure, no Django."""

from .comparison import Comparison
from .judge import judge, outcome_of
from .minutes import InstanceMinute
from .outcome import Evidence, Known, Outcome
from .settings import PRODUCTION, Affected, Ratio, Settings
from .states import InstanceStart, InstanceState

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
