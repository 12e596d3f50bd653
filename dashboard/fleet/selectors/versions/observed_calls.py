"""Observed calls: the denominator of a share of compiled calls, from sampled and stalled calls."""

from __future__ import annotations

from django.db.models import F, FloatField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, NullIf

from dashboard.fleet.selectors.versions.version_series import EAGER_COLUMNS


def sum_observed_calls() -> Combinable:
    """Return the sampled calls of a row, plus an equal fraction of its stalled calls.

    A stalled call waits for a compilation and does not count as served compiled.
    """
    known, calls, stalled = (
        Cast(part, FloatField()) for part in (_sum_known_calls(), F("calls"), F("stalled_count"))
    )
    part = stalled * known / NullIf(calls - stalled, Value(0.0))
    return known + Coalesce(part, stalled, Value(0.0))


def _sum_known_calls() -> Combinable:
    return sum((F(name) for name in EAGER_COLUMNS), F("compiled") + F("partial"))
