"""Signal receivers of regressions: when late data merges two deployments, the verdicts of both
become the history of the kept one."""

from __future__ import annotations

from typing import Any

from dashboard.fleet.models import Deployment
from dashboard.regressions.models import Comparison, Verdict


def verdicts_repoint(
    sender: type[Deployment], gone: Deployment, kept: Deployment, **_: Any
) -> None:
    """Moves the verdicts to the kept deployment. Its own newest verdict stays current, if it has
    one; the comparison is rebuilt."""
    has_current = Verdict.objects.filter(deployment=kept, current=True).exists()
    if has_current:
        Verdict.objects.filter(deployment=gone, current=True).update(current=False)
    Verdict.objects.filter(deployment=gone).update(deployment=kept)
    Verdict.objects.filter(baseline=gone).update(baseline=kept)
    if not Comparison.objects.filter(deployment=kept).exists():
        Comparison.objects.filter(deployment=gone).update(deployment=kept)
    Comparison.objects.filter(baseline=gone).update(baseline=kept)
