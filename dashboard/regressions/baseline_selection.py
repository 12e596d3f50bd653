"""Baseline selection: the deployment that another one is compared with."""

from collections.abc import Sequence

from django.db.models import Sum

from dashboard.fleet.models import Deployment, Series, VersionHour
from dashboard.regressions.models import BaselineChoice, Verdict, VerdictKind

SHORT_MINUTES = 180
"""A shorter deployment of the same version is an earlier run of a job, and no baseline."""


def select_baseline(*, deployment: Deployment, earlier: Sequence[Deployment]) -> Deployment | None:
    """Selects a pinned version first. Of the versions that ran concurrently, selects the one last
    judged HEALTHY, or else the one with the most traffic.

    If none ran concurrently, selects the deployment that ended last: the past of its hosts is
    compared, or a page states what data is missing. Versions with a ROLL BACK verdict are skipped
    if another baseline exists; otherwise an equally bad candidate would look healthy.
    """
    if not earlier:
        return None
    pinned = _find_pinned_version(deployment)
    if pinned is not None and pinned != deployment.version_id:
        for other in reversed(earlier):
            if other.version_id == pinned:
                return other
    kinds = dict(
        Verdict.objects.filter(deployment__in=earlier, current=True).values_list(
            "deployment_id", "kind"
        )
    )
    earlier = [
        other for other in earlier if kinds.get(other.pk) != VerdictKind.ROLL_BACK
    ] or earlier
    beside = [other for other in earlier if other.last_minute >= deployment.started_minute]
    if len(beside) <= 1:
        # The newest deployment may be a canary that stopped long ago. The deployment that ran until
        # now is the one that the candidate replaced.
        return (
            beside[0]
            if beside
            else max(
                list_other_jobs(deployment, earlier),
                key=lambda other: (other.last_minute, other.started_minute),
            )
        )
    sound = [other for other in beside if kinds.get(other.pk) == VerdictKind.HEALTHY]
    if sound:
        return sound[-1]
    calls = count_calls_before(deployment, beside)
    return max(beside, key=lambda other: (calls.get(other.version_id, 0), other.started_minute))


def list_other_jobs(deployment: Deployment, earlier: Sequence[Deployment]) -> list[Deployment]:
    """The earlier deployments without runs of the same version as a short job, if others exist."""
    return [
        other
        for other in earlier
        if other.version_id != deployment.version_id
        or other.last_minute - other.started_minute >= SHORT_MINUTES
    ] or list(earlier)


def count_calls_before(deployment: Deployment, others: Sequence[Deployment]) -> dict[int, int]:
    """Calls in this environment of the other deployments' versions, in the 24 h before a
    deployment. Two queries for any number of deployments."""
    minute = deployment.started_minute
    series = Series.objects.filter(
        version_id__in={other.version_id for other in others}, environment=deployment.environment
    )
    version = dict(series.values_list("pk", "version_id"))
    hours = VersionHour.objects.filter(
        project_id=deployment.project_id,
        series_id__in=list(version),
        day__gte=(minute - 1440) // 1440,
        hour__gte=(minute - 1440) // 60,
        hour__lte=minute // 60,
    )
    found: dict[int, int] = {}
    for series_id, calls in hours.values_list("series_id").annotate(Sum("calls")):
        found[version[series_id]] = found.get(version[series_id], 0) + calls
    return found


def _find_pinned_version(deployment: Deployment) -> int | None:
    choices = BaselineChoice.objects.filter(
        project_id=deployment.project_id,
        model_id=deployment.model_id,
        environment=deployment.environment,
        ended_at=None,
    )
    return choices.order_by("-chosen_at").values_list("version_id", flat=True).first()
