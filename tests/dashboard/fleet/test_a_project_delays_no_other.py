"""A project with reports that cannot be folded, or with far more reports than others, does not
delay the fold of other projects."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compilewatch.wire.messages import Request

from dashboard.common import clock
from dashboard.fleet import fold_attempts, fold_service, round_robin
from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold_service import fold_all, poison_refold, retry_failed_folds, shards_fold
from dashboard.fleet.models import RegionMinute
from dashboard.fleet.write_facts import facts_store
from dashboard.ingest.models import FoldAttempt, InboxRow, PoisonReport
from dashboard.projects.models import Project
from tests.dashboard.fleet.totals import assert_all_counted

pytestmark = pytest.mark.django_db
Make = Callable[..., Request]
Store = Callable[..., object]


@pytest.fixture
def tries(other_project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Makes the database refuse all rows of the other project; returns the number of minutes in
    each refused fold."""
    found: list[int] = []

    def refuse(facts: Facts, **kwargs: Any) -> None:
        hostile = [
            key for key in facts.process_minutes if key[0].version.project == other_project.pk
        ]
        if hostile:
            found.append(len(hostile))
            raise ValueError("this one cannot be stored")
        facts_store(facts, **kwargs)

    monkeypatch.setattr(fold_service, "facts_store", refuse)
    yield found


def hostile(make_request: Make, store_reports: Store, project: Project, count: int = 60) -> None:
    """Reports of the other project in many shards, ahead of the reports of the first project."""
    store_reports(
        *(
            make_request(version=str(number), instance=number, minutes=6)
            for number in range(count // 6)
        ),
        project=project,
    )


def waiting(project: Project) -> int:
    return InboxRow.objects.filter(project=project).count()


def test_one_pass_folds_other_projects_despite_unfoldable_reports(
    make_request: Make,
    store_reports: Store,
    project: Project,
    other_project: Project,
    tries: list[int],
) -> None:
    hostile(make_request, store_reports, other_project)
    honest = [make_request(version=str(number), instance=number, minutes=3) for number in range(10)]
    store_reports(*honest)
    [everything] = round_robin.iterate_turns()
    assert shards_fold(everything.shards, everything.projects) == (30, False)
    assert tries == [
        60,
        60,
    ]  # once with others, once alone; nothing is halved during the turn of others
    assert (waiting(project), waiting(other_project)) == (0, 60)
    assert set(FoldAttempt.objects.values_list("project_id", flat=True)) == {other_project.pk}
    late = make_request(version="late", instance=99, minutes=5)
    store_reports(late)
    [mine] = [turn for turn in round_robin.iterate_turns() if project.pk in turn.projects]
    assert shards_fold(mine.shards, mine.projects)[0] == 5 and tries == [60, 60]
    fold_all()
    assert (
        PoisonReport.objects.count(),
        InboxRow.objects.count(),
        FoldAttempt.objects.count(),
    ) == (60, 0, 0)
    assert set(PoisonReport.objects.values_list("project_id", flat=True)) == {other_project.pk}
    assert_all_counted([*honest, late])


def test_retries_of_failed_folds_have_a_budget_and_new_reports_get_their_turn(
    make_request: Make,
    store_reports: Store,
    project: Project,
    other_project: Project,
    tries: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hostile(make_request, store_reports, other_project)
    fold_all(seconds=0.0001)
    for turn in round_robin.iterate_turns():
        shards_fold(turn.shards, turn.projects)
    assert FoldAttempt.objects.exists()
    before = len(tries)
    assert (
        retry_failed_folds(stop=time.monotonic() - 1.0)[0] <= 2 and len(tries) <= before + 2
    )  # a started fold ends, and no further one starts
    store_reports(make_request(version="1", instance=1, minutes=3))
    monkeypatch.setattr(fold_service, "RETRY_BUDGET_S", 0.0)
    passes = 0
    while waiting(project):
        fold_all(seconds=0.0001)
        passes += 1
    assert passes == 1 and waiting(other_project) > 0


def test_failed_folds_are_retried_in_small_parts(
    make_request: Make,
    store_reports: Store,
    project: Project,
    other_project: Project,
    tries: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fold_attempts, "MAX_RETRY_ROWS", 8)
    monkeypatch.setattr(fold_service, "MAX_RETRY_ROWS", 8)
    hostile(make_request, store_reports, other_project)
    fold_all()
    assert (
        PoisonReport.objects.count(),
        InboxRow.objects.count(),
        FoldAttempt.objects.count(),
    ) == (60, 0, 0)
    assert max(tries[1:]) <= 8  # the first fold could not know that the reports would fail


def test_new_reports_of_a_project_that_failed_are_folded(
    make_request: Make, store_reports: Store, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = make_request(minutes=20)
    store_reports(request)
    bad = request.reports[4].window[1]

    def refuse(facts: Facts, **kwargs: Any) -> None:
        if any(minute == int(-(-bad // 60)) - 1 for _, minute in facts.process_minutes):
            raise ValueError("this one cannot be stored")
        facts_store(facts, **kwargs)

    monkeypatch.setattr(fold_service, "facts_store", refuse)
    for turn in round_robin.iterate_turns():
        shards_fold(turn.shards, turn.projects)
    later = make_request(version="2", instance=2, minutes=7)
    store_reports(later)
    fold_all()
    assert [poison.seq_first for poison in PoisonReport.objects.all()] == [5]
    monkeypatch.setattr(fold_service, "facts_store", facts_store)
    assert poison_refold() == 1
    assert fold_all() == 1
    assert_all_counted([request, later])


def test_a_small_project_is_folded_before_and_between_the_batches_of_a_large_one(
    make_request: Make,
    store_reports: Store,
    project: Project,
    other_project: Project,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (fold_attempts, round_robin):
        monkeypatch.setattr(module, "batch_size", lambda: 20)
    store_reports(
        *(make_request(version=str(n), instance=n, minutes=10) for n in range(10)),
        project=other_project,
    )
    store_reports(make_request(minutes=3))
    order, late = list[tuple[list[int], int]](), make_request(version="late", instance=7, minutes=2)

    def recorded(shards: list[int], projects: list[int]) -> tuple[int, bool]:
        found = shards_fold(shards, projects)
        order.append((projects, found[0]))
        if len(order) == 2:
            store_reports(late)
        return found

    monkeypatch.setattr(fold_service, "shards_fold", recorded)
    fold_all()
    assert order[:3] == [([project.pk], 3), ([other_project.pk], 20), ([project.pk], 2)]
    assert (
        not InboxRow.objects.exists()
        and RegionMinute.objects.filter(project_id=project.pk).count() == 5
    )


def test_two_large_projects_take_turns(
    make_request: Make,
    store_reports: Store,
    project: Project,
    other_project: Project,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (fold_attempts, round_robin):
        monkeypatch.setattr(module, "batch_size", lambda: 12)
    for one in (other_project, project):
        store_reports(make_request(minutes=36), project=one)
    order: list[int] = []

    def recorded(shards: list[int], projects: list[int]) -> tuple[int, bool]:
        found = shards_fold(shards, projects)
        order.extend(projects * bool(found[0]))
        return found

    monkeypatch.setattr(fold_service, "shards_fold", recorded)
    fold_all()
    assert sorted(order[:2]) == sorted(order[2:4]) == sorted([project.pk, other_project.pk])
    assert not InboxRow.objects.exists()


def test_attempts_recorded_by_an_earlier_release_are_retried(
    make_request: Make, store_reports: Store
) -> None:
    request = make_request(minutes=9)
    store_reports(request)
    ids = sorted(InboxRow.objects.values_list("id", flat=True))
    shard = InboxRow.objects.values_list("shard", flat=True)[0]
    FoldAttempt.objects.create(
        shard=shard,
        first_id=ids[2],
        last_id=ids[6],
        started_at=clock.now(),
        worker="an earlier one",
    )
    [turn] = round_robin.iterate_turns()
    assert shards_fold(turn.shards, turn.projects)[0] == 4
    assert fold_all() == 5
    assert_all_counted([request])
    assert not FoldAttempt.objects.exists()
