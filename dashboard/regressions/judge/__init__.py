"""Judges a version against its baseline: minutes of instances in, a verdict with its evidence out; pure, no Django."""

from .comparison import Comparison
from .judge import judge, outcome_of
from .minutes import InstanceMinute
from .outcome import Evidence, Outcome
from .settings import PRODUCTION, Affected, Ratio, Settings

__all__ = ["PRODUCTION", "Affected", "Comparison", "Evidence", "InstanceMinute", "Outcome", "Ratio", "Settings", "judge", "outcome_of"]
