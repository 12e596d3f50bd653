"""Which deployment another one is judged against."""

from collections.abc import Sequence

from django.db.models import Sum

from dashboard.fleet.models import Deployment, Series, VersionHour
from dashboard.regressions.models import BaselineChoice, Verdict, VerdictKind


def baseline_of(*, deployment: Deployment, earlier: Sequence[Deployment]) -> Deployment | None:
    """A pinned version first; else, of those that ran beside it, the one last judged HEALTHY, else the one with most traffic.

    When nothing ran beside it the deployment just before is named, so that a page can say what is missing.
    """
    if not earlier:
        return None
    pinned = _pinned(deployment)
    if pinned is not None and pinned != deployment.version_id:
        for other in reversed(earlier):
            if other.version_id == pinned:
                return other
    beside = [other for other in earlier if other.last_minute >= deployment.started_minute]
    if len(beside) <= 1:
        return beside[0] if beside else earlier[-1]
    healthy = set(
        Verdict.objects.filter(deployment__in=beside, current=True, kind=VerdictKind.HEALTHY).values_list("deployment_id", flat=True)
    )
    sound = [other for other in beside if other.pk in healthy]
    return sound[-1] if sound else max(beside, key=lambda other: (calls_before(other, deployment.started_minute), other.started_minute))


def calls_before(deployment: Deployment, minute: int) -> int:
    """Calls of a deployment in the 24 h before a minute."""
    series = Series.objects.filter(version_id=deployment.version_id, environment=deployment.environment)
    hours = VersionHour.objects.filter(
        project_id=deployment.project_id,
        series_id__in=series.values("pk"),
        day__gte=(minute - 1440) // 1440,
        hour__gte=(minute - 1440) // 60,
        hour__lte=minute // 60,
    )
    return hours.aggregate(total=Sum("calls"))["total"] or 0


def _pinned(deployment: Deployment) -> int | None:
    choices = BaselineChoice.objects.filter(
        project_id=deployment.project_id, model_id=deployment.model_id, environment=deployment.environment, ended_at=None
    )
    return choices.order_by("-chosen_at").values_list("version_id", flat=True).first()
