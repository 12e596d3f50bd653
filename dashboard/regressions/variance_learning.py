"""Variance learning: replays each pair of versions once, and pools the learned spread and warm-up
of all pairs each night.

A pair with a bad verdict teaches only its warm-up, which compares each process with its own later
level. Otherwise a warm-up that looks like a regression would never be learned.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import asdict

from django.db.models import Exists, OuterRef, Q

from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import Deployment
from dashboard.fleet.retention import find_first_kept_instance_minute
from dashboard.fleet.selectors.judge_inputs.execution_modes import read_mode_changes
from dashboard.fleet.selectors.judge_inputs.judge_minutes import closed_minute
from dashboard.projects.models import Project
from dashboard.regressions.comparison_cache import replay_minutes
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.variance_prior import Lesson, LessonSums, pool_lessons
from dashboard.regressions.judge.warm_up import WarmUpLesson, WarmUpSums, pool_warm_up
from dashboard.regressions.models import (
    Comparison,
    HealthyPair,
    LearnedVariance,
    LearnedWarmUp,
    Verdict,
    VerdictKind,
)
from dashboard.regressions.settings_resolver import ANY_LAYOUT, SettingsResolver

logger = logging.getLogger(__name__)

TIME_BUDGET_S = 60.0
"""Seconds after which a run stops. The next run replays the remaining pairs while their minutes are
retained."""
LEARN_MINUTES = 2 * 1440
"""Minutes of a deployment that are replayed: two days, so that each hour has the same hour of the
day before."""
SETTLE_MINUTES = 60
"""Minutes after its end before a deployment is used for learning: late data has arrived, and the
verdict is final."""
DAYS_POOLED = 180


def variances_learn(*, seconds: float = TIME_BUDGET_S) -> int:
    """Learns from the due pairs for about `seconds`, and pools once a day. Returns the number of
    replayed pairs."""
    stop, now_minute, replayed = time.monotonic() + seconds, closed_minute(clock.unix()) + 1, 0
    book = SettingsResolver()
    for project in Project.objects.order_by("pk"):
        for deployment, baseline, healthy in list_ripe_pairs(
            project=project, now_minute=now_minute
        ):
            if time.monotonic() >= stop:
                break
            settings = book.of(project_id=project.pk, model_id=deployment.model_id)
            try:
                taught, warm_up = replay_pair(
                    deployment=deployment,
                    baseline=baseline,
                    now_minute=now_minute,
                    settings=settings,
                )
            except Exception:
                # A pair whose replay fails must not block the others. The next run retries it.
                logger.exception("learning from deployment %s failed", deployment.pk)
                continue
            with write_transaction():
                fields = {
                    "project": project,
                    "started_minute": deployment.started_minute,
                    "taught": taught if healthy else {},
                    "warm_up": warm_up,
                }
                HealthyPair.objects.get_or_create(deployment=deployment, defaults=fields)
            replayed += 1
        if not LearnedVariance.objects.filter(
            project=project, learned_at__gte=clock.now().replace(hour=0, minute=0, second=0)
        ).exists():
            variances_pool(project=project, now_minute=now_minute)
    return replayed


def list_ripe_pairs(
    *, project: Project, now_minute: int
) -> Iterator[tuple[Deployment, Deployment, bool]]:
    """Deployments with their baselines that ended or are two days old, have all minutes retained,
    and have not been used for learning. The third value is False if either had a bad verdict."""
    kept_from = find_first_kept_instance_minute(project=project, now=now_minute * 60)
    bad = Verdict.objects.filter(kind__in=[VerdictKind.WATCH, VerdictKind.ROLL_BACK])
    rows = Comparison.objects.filter(
        project=project, deployment__started_minute__gte=kept_from
    ).exclude(baseline=None)
    ripe = Q(deployment__ended_minute__lte=now_minute - SETTLE_MINUTES) | Q(
        deployment__started_minute__lte=now_minute - LEARN_MINUTES - SETTLE_MINUTES
    )
    rows = rows.filter(ripe).exclude(deployment__version__name=OTHER)
    rows = rows.filter(
        ~Exists(HealthyPair.objects.filter(deployment=OuterRef("deployment")))
    ).annotate(
        healthy=~Exists(bad.filter(deployment=OuterRef("deployment")))
        & ~Exists(bad.filter(deployment=OuterRef("baseline"), kind=VerdictKind.ROLL_BACK))
    )
    for row in rows.select_related("deployment__version", "baseline__version").order_by(
        "deployment__started_minute"
    ):
        if row.baseline is not None:
            yield row.deployment, row.baseline, row.healthy


def replay_pair(
    *, deployment: Deployment, baseline: Deployment, now_minute: int, settings: Settings
) -> tuple[LessonSums, WarmUpSums]:
    """Replays the first two days of a pair."""
    if read_mode_changes(deployment=deployment, baseline=baseline):
        return {}, {}  # Its execution mode changed, so a difference is not noise.
    until = min(deployment.started_minute + LEARN_MINUTES, deployment.last_minute + 1, now_minute)
    lesson, young = Lesson(settings), WarmUpLesson(settings)
    for comparison, rows in replay_minutes(
        deployment=deployment, baseline=baseline, until=until, settings=settings
    ):
        lesson.observe(comparison, rows)
        young.observe(comparison, rows)
    return lesson.taught(), young.taught()


def variances_pool(*, project: Project, now_minute: int) -> None:
    """Replaces the stored values by the pooled values of all pairs of the last months."""
    oldest = now_minute - DAYS_POOLED * 1440
    pairs = HealthyPair.objects.filter(project=project, started_minute__gte=oldest).exclude(
        taught={}
    )
    learned, now = pool_lessons(list(pairs.values_list("taught", flat=True))), clock.now()
    rows = [
        LearnedVariance(
            project=project,
            metric=name,
            layout=ANY_LAYOUT,
            minutes=minutes,
            variance=variance,
            day_variance=lesson.day_variance,
            dispersion=lesson.dispersion,
            prior_df=lesson.prior_df,
            pairs=lesson.pairs,
            learned_at=now,
        )
        for name, lesson in learned.items()
        for minutes, variance in lesson.variance or ((0, 0.0),)
    ]
    with write_transaction():
        HealthyPair.objects.filter(project=project, started_minute__lt=oldest).delete()
        LearnedVariance.objects.filter(project=project).delete()
        LearnedVariance.objects.bulk_create(rows)
        warm_ups_pool(project=project)


def warm_ups_pool(*, project: Project) -> None:
    """Replaces the learned warm-up of each model by that of its pairs of the last months."""
    by_model: dict[int, list[WarmUpSums]] = {}
    pairs = HealthyPair.objects.filter(project=project).exclude(warm_up__isnull=True)
    pairs = pairs.exclude(warm_up={})
    for model_id, sums in pairs.values_list("deployment__model_id", "warm_up"):
        by_model.setdefault(model_id, []).append(sums or {})
    found = {model_id: pool_warm_up(lessons) for model_id, lessons in by_model.items()}
    LearnedWarmUp.objects.filter(project=project).delete()
    LearnedWarmUp.objects.bulk_create(
        LearnedWarmUp(project=project, model_id=model_id, learned_at=clock.now(), **asdict(learned))
        for model_id, learned in found.items()
        if learned is not None
    )
