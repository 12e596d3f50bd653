"""Which calls stand behind a share of calls that ran compiled: those that an agent looked at, and
the calls that stalled."""

from __future__ import annotations

from django.db.models import F, FloatField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, NullIf

from dashboard.fleet.selectors.versions.version_series import EAGER_COLUMNS


def sum_observed_calls() -> Combinable:
    """Calls of a row that were looked at, and as large a part of its stalled calls: a stalled call
    is not served compiled, it waited."""
    known, calls, stalled = (
        Cast(part, FloatField()) for part in (_sum_known_calls(), F("calls"), F("stalled_count"))
    )
    part = stalled * known / NullIf(calls - stalled, Value(0.0))
    return known + Coalesce(part, stalled, Value(0.0))


def _sum_known_calls() -> Combinable:
    return sum((F(name) for name in EAGER_COLUMNS), F("compiled") + F("partial"))
