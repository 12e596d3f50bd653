"""Health check of the judge: live deployments without a recent evaluation."""

from django.db.models import Q

from dashboard.common import clock
from dashboard.common.health import Check
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judge_inputs.judge_minutes import closed_minute

LATE_MINUTES = 10
"""Delay that counts as late. A deployment is normally evaluated within seconds of each minute's
end."""


def judge_check() -> Check:
    """Number of deployments whose evaluation is late, because the judge does not run or fails on
    them."""
    until = closed_minute(clock.unix()) + 1 - LATE_MINUTES
    live = (
        Deployment.objects.filter(ended_minute=None, started_minute__lt=until)
        .exclude(version__name=OTHER)
        .exclude(environment=OTHER)
    )
    late = live.filter(Q(comparison=None) | Q(comparison__judged_minute__lt=until)).count()
    if late:
        who = "A deployment has" if late == 1 else f"{late} deployments have"
        text = (
            f"{who} not been evaluated for over {LATE_MINUTES} min, so the verdicts are outdated. "
            "See the worker's log."
        )
        return Check("judge", False, late, 0, "deployments", text)
    return Check(
        "judge", True, 0, 0, "deployments", "Every live deployment is evaluated each minute."
    )
