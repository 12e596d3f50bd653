"""The sums of the stored rows equal the sums of the sent reports, bin by bin, in any order and
batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence

import pytest
from compilewatch.wire.messages import Request
from django.db.models import F

from dashboard.fleet import fold_attempts, fold_service, round_robin
from dashboard.fleet.fold_service import fold_all, shards_fold
from dashboard.fleet.models import (
    Instance,
    ProcessMinute,
    RegionMinute,
    VersionProcessHour,
    VersionProcessMinute,
)
from dashboard.ingest.models import FoldAttempt, InboxRow
from tests.dashboard.fleet.totals import assert_all_counted

END = 1_790_000_040.0
MakeRequest = Callable[..., Request]
Store = Callable[..., object]

pytestmark = pytest.mark.django_db


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr("dashboard.common.clock.unix", lambda: END + 5)
    return END + 5


def fleet(make_request: MakeRequest) -> list[Request]:
    """Two versions of a model on three instances each, with 10-second windows."""
    return [
        make_request(
            version=version, instance=10 * number + n, minutes=12, end=END + 2, first_seq=1
        )
        for number, version in enumerate(("1", "2"))
        for n in range(3)
    ]


def test_one_fold_counts_everything(make_request: MakeRequest, store_reports: Store) -> None:
    requests = [
        make_request(version=v, instance=i, minutes=5) for i, v in enumerate(("1", "1", "2"))
    ]
    store_reports(*requests)
    assert fold_all() == 15
    assert_all_counted(requests)
    assert not InboxRow.objects.exists()
    assert not FoldAttempt.objects.exists()
    assert Instance.objects.count() == 3


@pytest.mark.parametrize("seed", range(3))
def test_any_order_and_any_batch_size_counts_the_same(
    make_request: MakeRequest,
    store_reports: Store,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    now: float,
) -> None:
    rnd = random.Random(seed)
    requests = fleet(make_request)
    monkeypatch.setattr(fold_attempts, "batch_size", lambda: rnd.choice((1, 2, 5, 13)))
    pieces = [
        Request(1, now, request.instance, [report])
        for request in requests
        for report in request.reports
    ]
    rnd.shuffle(pieces)
    for start in range(0, len(pieces), 7):
        store_reports(*pieces[start : start + 7])
        fold_all()
    assert_all_counted(requests)
    minutes = {
        (row.version_id, row.minute): row.instances for row in VersionProcessMinute.objects.all()
    }
    assert set(minutes.values()) == {3}
    assert {row.instances for row in VersionProcessHour.objects.all()} == {3}
    assert sum(row.windows for row in ProcessMinute.objects.all()) == len(pieces)


def test_reports_are_folded_in_order_of_arrival_across_shards(
    make_request: MakeRequest, store_reports: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    many, few = (
        make_request(version="1", instance=1, minutes=9),
        make_request(version="2", instance=2, minutes=3),
    )
    for number in range(9):
        for request in (many, few):
            store_reports(
                Request(1, request.sent, request.instance, request.reports[number : number + 1])
            )
    monkeypatch.setattr(fold_attempts, "batch_size", lambda: 4)
    waiting = list(InboxRow.objects.order_by("id").values_list("id", flat=True))
    shards = list(InboxRow.objects.values_list("shard", flat=True).distinct())
    assert shards_fold(
        shards, InboxRow.objects.values_list("project_id", flat=True).distinct()
    ) == (4, True)
    assert list(InboxRow.objects.order_by("id").values_list("id", flat=True)) == waiting[4:]
    assert fold_all() == 8
    assert_all_counted([many, few])


@pytest.mark.parametrize(("most", "folds"), [(40, [40]), (39, [16, 16, 8])])
def test_one_batch_is_one_fold_and_more_work_is_split_between_workers(
    make_request: MakeRequest,
    store_reports: Store,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    folds: list[int],
) -> None:
    requests = [
        make_request(version=str(number), instance=number, minutes=1) for number in range(40)
    ]
    store_reports(*requests)
    InboxRow.objects.update(shard=F("id") % 40)
    begun: list[int] = []

    def recorded(shards: Sequence[int], projects: Collection[int]) -> tuple[int, bool]:
        found = shards_fold(shards, projects)
        begun.extend([len(shards)] * bool(found[0]))
        return found

    monkeypatch.setattr(fold_service, "shards_fold", recorded)
    monkeypatch.setattr(round_robin, "batch_size", lambda: most)
    assert fold_all() == 40
    assert begun == folds
    assert_all_counted(requests)


def test_a_repeated_request_counts_once(make_request: MakeRequest, store_reports: Store) -> None:
    request = make_request(minutes=4)
    for _ in range(3):
        store_reports(request)
        fold_all()
    assert_all_counted([request])


def test_quantiles_are_those_of_the_merged_sketch(
    make_request: MakeRequest, store_reports: Store, now: float
) -> None:
    from compilewatch.wire.sketch import Sketch

    request = make_request(end=END, minutes=1, p50=0.02)
    twin = make_request(end=END, minutes=1, p50=0.04, first_seq=2)
    store_reports(request)
    fold_all()
    store_reports(twin)
    fold_all()
    both = Sketch()
    for one in (request, twin):
        latency = one.reports[0].regions[0].latency
        assert latency is not None
        both.merge(latency)
    row = RegionMinute.objects.get()
    assert (row.p50, row.p95, row.p99) == pytest.approx(
        (both.quantile(0.5), both.quantile(0.95), both.quantile(0.99)), rel=1e-14
    )
    assert row.latency_count == both.count
