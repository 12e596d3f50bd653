"""Drift text: describes how much slower a version is than on its first day."""

from __future__ import annotations

from typing import Protocol

from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.numbers import is_factor, magnitude


class DriftLike(Protocol):
    """Input of the text: a drift of the judge, or a stored one."""

    @property
    def metric(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def change(self) -> float: ...


def describe_drift(found: DriftLike) -> str:
    """Describes the metric and the size of its change."""
    of = f" of `{found.region}`" if found.region else ""
    way = "as long as" if is_factor(found.change) else "slower than"
    return (
        f"{find_metric(found.metric).phrase}{of} is {magnitude(found.change)} {way} on the "
        "version's first day, adjusted for load and time of day"
    )
