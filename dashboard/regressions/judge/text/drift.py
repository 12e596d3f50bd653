"""How much slower a version is than it was itself, in words."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.common.numbers import is_factor, magnitude
from dashboard.regressions.judge.self_drift import SelfDrift
from dashboard.vocabulary.metrics import find_metric


def describe_drift(found: Mapping[str, object] | SelfDrift) -> str:
    """What has risen, and by how much; takes a stored one as well."""
    told = (
        found
        if isinstance(found, Mapping)
        else {"metric": found.metric, "region": found.region, "change": found.change}
    )
    metric, region, change = (told.get(key) for key in ("metric", "region", "change"))
    of = f" of `{region}`" if region else ""
    ratio = change if isinstance(change, float) else 0.0
    size = f"{magnitude(ratio)} {'as long as' if is_factor(ratio) else 'slower than'}"
    return (
        f"{find_metric(str(metric)).phrase}{of} is {size} on the version's own first day, "
        "adjusted for load and time of day"
    )
