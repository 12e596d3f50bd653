"""A version without a baseline is compared with its own first day: from rows of minutes to a
verdict with its sentence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from dashboard.common import clock
from dashboard.fleet.models import (
    Deployment,
    Instance,
    ModelVersion,
    RegionMinute,
    Series,
    Stratum,
    WatchedModel,
)
from dashboard.fleet.partitions import partitions_ensure
from dashboard.projects.models import Project
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.fact_lines import fact_lines
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db

DAY = 1440
SLOWER = 300
"""Minutes before now."""
START = NOW_MINUTE - DAY - SLOWER - 60


@pytest.fixture
def deployment(project: Project, time_is: Clock) -> Iterator[Deployment]:
    """A first version with one instance, without calls."""
    clear_comparisons()
    for back in range(4):
        partitions_ensure(today=NOW_MINUTE // DAY - back)
    then = clock.now() - timedelta(days=2)
    seen = {"first_seen_at": then, "last_seen_at": clock.now()}
    model = WatchedModel.objects.create(project=project, name="ranker", **seen)
    version = ModelVersion.objects.create(
        project=project, model=model, name="v1", last_minute=NOW_MINUTE - 1, revision=1, **seen
    )
    where = {"project": project, "model": model, "version": version, "environment": "production"}
    Instance.objects.create(
        **where,
        instance_id="one",
        started_at=then,
        last_seen_at=clock.now(),
        first_minute=START,
        active_minute=START,
        last_minute=NOW_MINUTE - 1,
    )
    yield Deployment.objects.create(**where, started_minute=START, last_minute=NOW_MINUTE - 1)
    clear_comparisons()


def call(deployment: Deployment, slower: float) -> None:
    """One call a second in every minute; calls of the last hours are slower."""
    stratum = Stratum.objects.create(
        project=deployment.project, gpu="", mode="default", runtime="torch.compile", world_size=1
    )
    where = {
        "version": deployment.version,
        "environment": "production",
        "region": "forward",
        "bucket": "2^8",
    }
    series = Series.objects.create(project=deployment.project, stratum=stratum, **where)
    instance = Instance.objects.get(instance_id="one")
    rows = []
    for minute in range(START, NOW_MINUTE):
        took = 0.010 * (
            1.0 + 0.01 * (minute % 3) + (slower if minute >= NOW_MINUTE - SLOWER else 0.0)
        )
        row = {
            "project_id": deployment.project_id,
            "instance_id": instance.pk,
            "series_id": series.pk,
            "minute": minute,
        }
        rows.append(
            RegionMinute(
                **row,
                day=minute // DAY,
                calls=60,
                compiled=60,
                p50=took,
                p99=2 * took,
                latency_count=60,
            )
        )
    RegionMinute.objects.bulk_create(rows, batch_size=500)


def test_a_slower_first_version_is_watched_and_reported_once(deployment: Deployment) -> None:
    call(deployment, 0.3)
    deployments_judge()
    verdict = Verdict.objects.get(current=True)
    assert verdict.kind == "watch" and verdict.baseline is None
    assert verdict.sentence.startswith("V1 is drifting: p50 of `forward` is 3"), verdict.sentence
    assert (
        verdict.since_minute is not None and abs(verdict.since_minute - (NOW_MINUTE - SLOWER)) <= 10
    )
    assert [line.where for line in fact_lines(verdict.evidence)] == ["over 1\u00a0instance"]
    assert fact_lines(verdict.evidence, sentence=verdict.sentence) == []


def test_an_unchanged_first_version_has_nothing_to_compare_with(deployment: Deployment) -> None:
    call(deployment, 0.02)
    deployments_judge()
    verdict = Verdict.objects.get(current=True)
    assert (verdict.kind, verdict.evidence["drift"]) == ("not_enough_data", [])
    assert "no baseline yet" in verdict.sentence
