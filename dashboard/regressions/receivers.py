"""Two deployments that late data shows to be one: what was said about either stays, as the history
of the one that is kept."""

from __future__ import annotations

from typing import Any

from dashboard.fleet.models import Deployment
from dashboard.regressions.models import Comparison, Verdict


def verdicts_repoint(
    sender: type[Deployment], gone: Deployment, kept: Deployment, **_: Any
) -> None:
    """The newest verdict of the kept deployment stays the current one, if it has any; a comparison
    is built anew."""
    has_current = Verdict.objects.filter(deployment=kept, current=True).exists()
    if has_current:
        Verdict.objects.filter(deployment=gone, current=True).update(current=False)
    Verdict.objects.filter(deployment=gone).update(deployment=kept)
    Verdict.objects.filter(baseline=gone).update(baseline=kept)
    if not Comparison.objects.filter(deployment=kept).exists():
        Comparison.objects.filter(deployment=gone).update(deployment=kept)
    Comparison.objects.filter(baseline=gone).update(baseline=kept)
