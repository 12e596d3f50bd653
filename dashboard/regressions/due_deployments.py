"""Due deployments: deployments with a new closed minute, with late data, or evaluated by a clock
that was ahead."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import F, Q

from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.fold.live_spans import MAX_AHEAD_MINUTES
from dashboard.fleet.models import Deployment
from dashboard.regressions.models import Comparison

JUDGE_AFTER_END_MINUTES = 60
"""Minutes after its end during which a deployment is still evaluated, so that its end becomes part
of the verdict."""


def list_due_deployments(*, now_minute: int) -> Iterator[tuple[Deployment, list[Deployment]]]:
    """Deployments to evaluate, each with the earlier ones of its model and environment, oldest
    first."""
    live = Deployment.objects.filter(ended_minute=None) | Deployment.objects.filter(
        ended_minute__gte=now_minute - JUDGE_AFTER_END_MINUTES
    )
    other = Q(comparison__judged_minute__lt=now_minute) | Q(
        comparison__judged_minute__gt=now_minute + MAX_AHEAD_MINUTES
    )
    due = Q(comparison=None) | other | ~Q(comparison__judged_revision=F("version__late_folds"))
    # The overflow of versions or environments is neither evaluated nor a baseline, because it mixes
    # several of them.
    judged_at_all = live.exclude(environment=OTHER).exclude(version__name=OTHER)
    groups = set(judged_at_all.filter(due).values_list("model_id", "environment"))
    for model_id, environment in sorted(groups):
        ordered = list_deployments(model_id=model_id, environment=environment)
        judged = {
            row.deployment_id: row for row in Comparison.objects.filter(deployment__in=ordered)
        }
        for number, deployment in enumerate(ordered):
            ended = (
                deployment.ended_minute is not None
                and deployment.ended_minute < now_minute - JUDGE_AFTER_END_MINUTES
            )
            if not ended and _is_due(judged.get(deployment.pk), deployment, now_minute):
                yield deployment, ordered[:number]


def list_deployments(*, model_id: int, environment: str) -> list[Deployment]:
    """Every deployment that can be evaluated or serve as a baseline, oldest first."""
    rows = Deployment.objects.filter(model_id=model_id, environment=environment).exclude(
        version__name=OTHER
    )
    return list(rows.select_related("version", "model", "project").order_by("started_minute", "pk"))


def name_environment(deployment: Deployment) -> str:
    """The environment, if the model runs in others as well; else empty."""
    others = Deployment.objects.filter(model_id=deployment.model_id, ended_minute=None)
    others = others.exclude(environment__in=(deployment.environment, OTHER))
    return deployment.environment if others.exists() else ""


def _is_due(judged: Comparison | None, deployment: Deployment, now_minute: int) -> bool:
    """True once a minute, and when late data arrived for minutes that may be evaluated already.
    Data in time waits for the end of its minute.

    An evaluation further ahead than the clocks of machines differ was made by a wrong clock.
    """
    return (
        judged is None
        or not now_minute <= judged.judged_minute <= now_minute + MAX_AHEAD_MINUTES
        or judged.judged_revision != deployment.version.late_folds
    )
