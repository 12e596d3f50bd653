"""Windows that arrive after the evaluation of their minute, or that another worker evaluated, do
not change the final verdict."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from itertools import pairwise
from typing import Any

import pytest

from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.models import Deployment
from dashboard.regressions import comparison_cache
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge import PRODUCTION
from dashboard.regressions.judge import Comparison as Running
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Comparison, Verdict

pytestmark = pytest.mark.django_db


def answer() -> tuple[str, str, dict[str, Any]]:
    verdict = Verdict.objects.get(current=True, deployment__version__name="2026.11.3")
    return verdict.kind, verdict.sentence, verdict.evidence


def test_late_windows_count_as_if_they_had_been_on_time(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    late = side_by_side[-1]
    for instance in side_by_side[:-1]:
        send(instance)
    send(late, last=10)
    send(late, first=25)
    deployments_judge()
    incomplete = answer()
    send(late, first=11, last=24)
    deployments_judge()
    in_the_end = answer()
    assert in_the_end != incomplete

    clear_comparisons()
    Verdict.objects.all().delete()
    Comparison.objects.all().delete()
    deployments_judge()
    assert answer() == in_the_end


def test_a_restarted_worker_gives_the_same_verdict(
    side_by_side: list[SimulatedInstance], send: Callable[..., None], time_is: Any
) -> None:
    for instance in side_by_side:
        send(instance, last=instance_windows(instance) - 5)
    time_is.minute -= 5
    deployments_judge()
    time_is.minute += 5
    for instance in side_by_side:
        send(instance, first=instance_windows(instance) - 4)
    deployments_judge()
    continued = answer()
    clear_comparisons()
    Comparison.objects.all().delete()
    deployments_judge()
    assert answer() == continued


def instance_windows(instance: SimulatedInstance) -> int:
    from tests.dashboard.regressions.conftest import NOW_MINUTE

    return NOW_MINUTE - instance.first_minute


def test_deployments_beyond_the_cache_size_do_not_evict_each_other(
    side_by_side: list[SimulatedInstance],
    send: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Five comparisons in turn, with room for three: two are read again at each sweep, not all of
    them."""
    for instance in side_by_side:
        send(instance, last=5)
    baseline, candidate = Deployment.objects.select_related("version", "project").order_by(
        "started_minute"
    )
    pairs = [(candidate, replaced(baseline, number)) for number in range(5)]
    monkeypatch.setattr(comparison_cache, "MAX_COMPARISONS", 3)

    def sweep(minute: int) -> list[Running]:
        return [
            comparison_cache.get_comparison(
                deployment=one, baseline=other, now_minute=minute, settings=PRODUCTION
            )
            for one, other in pairs
        ]

    start = candidate.started_minute
    found = [sweep(start + minute) for minute in (1, 2, 3)]
    assert [
        sum(before is after for before, after in zip(*each, strict=True))
        for each in pairwise(found)
    ] == [3, 3]
    # A comparison without requests expires regardless of free space: otherwise a worker would keep
    # the
    # comparisons of all old versions.
    later = start + 3 + comparison_cache.EXPIRE_AFTER_MINUTES + 1
    pairs = [(candidate, replaced(baseline, number)) for number in (7, 8)]
    assert all(before is after for before, after in zip(sweep(later), sweep(later), strict=True))
    assert set(comparison_cache._cache) == {(candidate.pk, 1007), (candidate.pk, 1008)}


def replaced(deployment: Deployment, number: int) -> Deployment:
    """The same deployment under another primary key."""
    other = copy(deployment)
    other.pk = 1000 + number
    return other


def test_continuous_late_data_is_read_again_only_every_few_minutes(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    late = side_by_side[-1]
    for instance in side_by_side[:-1]:
        send(instance)
    send(late, last=10)
    send(late, first=30)

    def read_comparison(minute: int) -> Running:
        older, newer = Deployment.objects.select_related("version", "project").order_by(
            "started_minute"
        )
        return comparison_cache.get_comparison(
            deployment=newer, baseline=older, now_minute=minute, settings=PRODUCTION
        )

    now = Deployment.objects.latest("started_minute").last_minute + 1
    first = read_comparison(now)
    send(late, first=11, last=15)
    second = read_comparison(now)
    send(late, first=16, last=20)
    waits = read_comparison(now + 1)
    again = read_comparison(now + comparison_cache.LATE_MINUTES)
    assert [second is first, waits is second, again is waits] == [False, True, False]
    clear_comparisons()
    fresh = read_comparison(now)
    assert [entry.track for entry in fresh.judged()] == [entry.track for entry in again.judged()]
    assert fresh.calls() == again.calls() != second.calls()
