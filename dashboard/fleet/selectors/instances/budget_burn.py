"""Budget burn: instances whose share of compiled calls violates the budget.

Measured over the last BURNING_MINUTES, and only beyond the range of chance.
"""

from __future__ import annotations

import math

from django.db.models import F, Min, QuerySet, Sum

from dashboard.fleet.budgets import resolve_budgets_with
from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import Deployment, Instance, RegionMinute, Series
from dashboard.fleet.selectors.instances.role_filters import where_counted as counted_rows
from dashboard.fleet.selectors.judge_inputs.deterministic_facts import CertainRow
from dashboard.fleet.selectors.versions.compiled_share import EAGER_RUNTIME
from dashboard.fleet.selectors.versions.observed_calls import sum_observed_calls
from dashboard.vocabulary.numbers import significant

BURNING_MINUTES = 30
WARM_UP_MINUTES = 5
"""Warm-up minutes to exclude, as the judge does. The budget also ignores instances with a shorter
history after warm-up."""
SINCE_WITHIN_MINUTES = 6 * 60
"""Minutes to search for the start of the burn."""
MIN_CALLS = 200
BUDGET_MULTIPLE, MIN_SIGMAS, EXTRA_CALLS = 2.0, 3.0, 3.0
"""The calls that did not run compiled must exceed twice the budget, and the budget by three
standard deviations plus three calls."""


def list_budget_burns(*, deployment: Deployment, now_minute: int) -> list[CertainRow]:
    """Return one row per instance that burns the budget.

    No query without a budget, else two, and a third one if an instance burns the budget.
    """
    budget = resolve_budgets_with(deployment.model, deployment.project.settings).served
    if budget is None:
        return []
    first = now_minute - BURNING_MINUTES
    names = _list_warm_instances(deployment, first)
    rows = _filter_calls(deployment, first, now_minute)
    late = rows.filter(day__gte=first // 1440, minute__gte=first)
    counted = late.values("instance_id").annotate(
        looked=Sum(sum_observed_calls()), served=Sum("compiled")
    )
    found = {
        pk: served / looked
        for pk, looked, served in counted.values_list("instance_id", "looked", "served")
        if pk in names and looked and exceeds_budget(round(looked), served, budget)
    }
    if not found:
        return []
    begun = max(now_minute - SINCE_WITHIN_MINUTES, deployment.started_minute)
    worse = rows.filter(day__gte=begun // 1440, minute__gte=begun, instance_id__in=found)
    since = _find_burn_starts(worse, budget)
    return [
        CertainRow(
            "budget_burning", names[pk], since.get(pk, first), "", _describe_burn(share, budget)
        )
        for pk, share in found.items()
    ]


def _list_warm_instances(deployment: Deployment, first: int) -> dict[int, str]:
    """Return the names of instances that were warm before minute `first` and reported since."""
    ran = Instance.objects.filter(
        counted_rows(),
        version_id=deployment.version_id,
        environment=deployment.environment,
        last_minute__gte=first,
    )
    ran = ran.filter(
        active_minute__lte=first - WARM_UP_MINUTES, first_minute__lte=first - WARM_UP_MINUTES
    )
    return dict(
        ran.exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX).values_list("pk", "instance_id")
    )


def _filter_calls(deployment: Deployment, first: int, now_minute: int) -> QuerySet[RegionMinute]:
    """Return the minutes of callers' calls in regions that do not run eager on purpose."""
    series = Series.objects.filter(
        version_id=deployment.version_id,
        environment=deployment.environment,
        outermost=True,
        last_minute__gte=first,
    ).exclude(stratum__runtime=EAGER_RUNTIME)
    return RegionMinute.objects.filter(
        project_id=deployment.project_id,
        day__lte=now_minute // 1440,
        series_id__in=series.values("pk"),
        minute__lt=now_minute,
    ).order_by()


def _find_burn_starts(rows: QuerySet[RegionMinute], budget: float) -> dict[int, int]:
    """Return the first minute beyond the budget by instance."""
    looked = rows.annotate(looked=sum_observed_calls())
    worse = looked.filter(compiled__lt=F("looked") * (1 - BUDGET_MULTIPLE * (1 - budget)))
    return dict(
        worse.values("instance_id")
        .annotate(first=Min("minute"))
        .values_list("instance_id", "first")
    )


def exceeds_budget(looked: int, served: int, budget: float) -> bool:
    """Return whether the calls that did not run compiled exceed both the budget and the range of
    chance."""
    allowed = looked * (1 - budget)
    return looked >= MIN_CALLS and looked - served > max(
        BUDGET_MULTIPLE * allowed, allowed + MIN_SIGMAS * math.sqrt(allowed) + EXTRA_CALLS
    )


def _describe_burn(share: float, budget: float) -> str:
    return (
        f"{_percent(share)} of its calls ran compiled in half an hour (budget {_percent(budget)})"
    )


def _percent(share: float) -> str:
    """Format a share as a percentage, rounded down so that a value below the budget never appears
    equal to it.

    Two decimal places from 99%, where budgets lie.
    """
    if share < 0.99:
        return f"{significant(math.floor(share * 1e3) / 1e1)}%"
    return f"{significant(math.floor(share * 1e4) / 1e2, 4)}%"
