"""How much slower a version is than it was itself, in words."""

from __future__ import annotations

from typing import Protocol

from dashboard.vocabulary.metrics import find_metric
from dashboard.vocabulary.numbers import is_factor, magnitude


class DriftLike(Protocol):
    """What the text of a drift is made from: a drift of the judge, or a stored one."""

    @property
    def metric(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def change(self) -> float: ...


def describe_drift(found: DriftLike) -> str:
    """What has risen, and by how much."""
    of = f" of `{found.region}`" if found.region else ""
    way = "as long as" if is_factor(found.change) else "slower than"
    return (
        f"{find_metric(found.metric).phrase}{of} is {magnitude(found.change)} {way} on the "
        "version's own first day, adjusted for load and time of day"
    )
