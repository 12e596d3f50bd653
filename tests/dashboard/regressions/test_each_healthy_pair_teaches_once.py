"""Learning: a pair of versions is replayed once after its end; the pooled result is written once a
day. A pair with a bad verdict teaches no spread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dashboard.demo.simulated_fleet import SimulatedInstance, build_fleet, build_instances
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge.pooled_estimate import prior_at
from dashboard.regressions.judge.settings import P50
from dashboard.regressions.judge.settings_overrides import ENOUGH_PAIRS
from dashboard.regressions.judge.variance_prior import MIN_VARIANCE_SHARE
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import HealthyPair, LearnedVariance, Verdict
from dashboard.regressions.settings_resolver import SettingsResolver
from dashboard.regressions.variance_learning import SETTLE_MINUTES, variances_learn, variances_pool
from tests.dashboard.regressions.conftest import JUDGED_MINUTES, NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def over(
    time_is: Clock, store_reports: Callable[..., Any], send: Callable[..., None]
) -> Iterator[Deployment]:
    """A version that ran alongside its baseline for some minutes, was evaluated, and ended a while
    ago."""
    clear_comparisons()
    healthy: list[SimulatedInstance] = build_instances(
        build_fleet(judged_minutes=JUDGED_MINUTES)[1:2], start_minute=NOW_MINUTE
    )
    newest = max(one.first_minute for one in healthy)
    for one in healthy:
        one.first_minute = (
            max(one.first_minute, NOW_MINUTE - 70) if one.first_minute < newest else NOW_MINUTE - 50
        )
        send(one)
    deployments_judge()
    time_is.minute += SETTLE_MINUTES + 5
    deployment = Deployment.objects.order_by("-started_minute").first()
    assert deployment is not None
    Deployment.objects.update(ended_minute=NOW_MINUTE)
    yield deployment
    clear_comparisons()


def test_a_pair_is_learned_once(over: Deployment, project: Project) -> None:
    assert variances_learn() == 1
    pair = HealthyPair.objects.get()
    assert pair.deployment == over
    squares, freedom = pair.taught["p50"]["points"]["20"]
    assert freedom >= 2
    assert 0 < squares / freedom < 0.2**2
    assert pair.taught["gpu_memory"]["points"]
    assert variances_learn() == 0


def test_a_pair_that_has_not_ended_waits(over: Deployment) -> None:
    Deployment.objects.update(ended_minute=None)
    assert variances_learn() == 0


@pytest.mark.parametrize("kind", ["watch", "roll_back"])
def test_a_version_with_an_earlier_bad_verdict_teaches_no_spread(
    over: Deployment, kind: str
) -> None:
    Verdict.objects.filter(deployment=over).update(previous_kind=kind, kind=kind, current=False)
    assert variances_learn() == 1
    assert HealthyPair.objects.get().taught == {}
    assert not LearnedVariance.objects.exists()
    assert variances_learn() == 0


def test_a_pair_with_expiring_minutes_is_not_learned(over: Deployment, time_is: Clock) -> None:
    time_is.minute += 9 * 1440
    assert variances_learn() == 0


def test_lessons_are_pooled_once_a_day_and_apply_from_the_required_number_of_pairs(
    over: Deployment, project: Project, time_is: Clock
) -> None:
    variances_learn()
    pair = HealthyPair.objects.get()
    deployments = [
        Deployment(
            project=project,
            model=over.model,
            version=over.version,
            environment=f"e{number}",
            started_minute=over.started_minute,
            last_minute=over.last_minute,
        )
        for number in range(ENOUGH_PAIRS - 1)
    ]
    fields = {"project": project, "started_minute": over.started_minute, "taught": pair.taught}
    HealthyPair.objects.bulk_create(
        [
            HealthyPair(deployment=row, **fields)
            for row in Deployment.objects.bulk_create(deployments)
        ]
    )
    squares, freedom = pair.taught["p50"]["points"]["20"]
    variances_learn()
    learned = LearnedVariance.objects.filter(metric="p50", minutes=20)
    assert not learned.exists()
    time_is.minute += 1440
    variances_learn()
    assert learned.get().pairs == ENOUGH_PAIRS
    least = MIN_VARIANCE_SHARE * prior_at(P50.prior_variance, 20)
    assert learned.get().variance == pytest.approx(max(squares / freedom, least))
    metric = SettingsResolver().of(project_id=project.pk).metrics[0]
    assert dict(getattr(metric, "prior_variance", ()))[20] == pytest.approx(
        learned.get().variance, rel=0.05
    )


def test_pairs_are_deleted_after_half_a_year(
    over: Deployment, project: Project, time_is: Clock
) -> None:
    variances_learn()
    variances_pool(project=project, now_minute=NOW_MINUTE + 181 * 1440)
    assert not HealthyPair.objects.exists()
