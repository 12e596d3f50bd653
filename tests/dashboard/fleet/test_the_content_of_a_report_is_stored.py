"""Stored rows after a fold: compilations, cold starts, findings, instances and process minutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from compilewatch.wire.messages import (
    Compile,
    Device,
    Fact,
    Finding,
    Gauges,
    Losses,
    Report,
    Request,
)

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import (
    ColdStart,
    CompileEvent,
    FindingInstance,
    FindingVersion,
    Instance,
    ModelVersion,
    ProcessMinute,
    RegionMinute,
    VersionHour,
    VersionMinute,
    VersionProcessHour,
    VersionProcessMinute,
    WatchedModel,
)
from dashboard.fleet.models import Finding as StoredFinding

NOW = 1_790_000_045.0
END = 1_790_000_040.0

MakeRequest = Callable[..., Request]
Store = Callable[..., object]
Send = Callable[..., None]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "unix", lambda: NOW)


@pytest.fixture
def send(make_request: MakeRequest, store_reports: Store) -> Send:
    """Sends one report with these fields and folds it."""

    def send(
        *,
        seq: int = 1,
        instance: int = 0,
        version: str = "1",
        end: float = END,
        window: float = 60.0,
        **fields: object,
    ) -> None:
        def change(report: Report) -> None:
            for name, value in fields.items():
                setattr(report, name, value)

        request = make_request(
            version=version, instance=instance, first_seq=seq, end=end, window=window, change=change
        )
        store_reports(replace(request, sent=NOW))
        fold_all()

    return send


def compiled(at: float, seconds: float, **fields: object) -> Compile:
    return Compile(
        at,
        "0/0",
        "first",
        "ok",
        frame="forward",
        seconds={"total": seconds, "dynamo": 0.5},
        **fields,
    )  # type: ignore[arg-type]


def test_each_compilation_is_a_row_and_is_counted(send: Send) -> None:
    hit = compiled(END - 30, 4.0, cache={"fx": "hit", "aot": "bypass"}, saved=9.0)
    miss = compiled(END - 20, 6.0, cache={"fx": "miss"}, in_request=True)
    failed = replace(
        compiled(END - 10, 1.0), kind="recompile", outcome="raised", reason="size changed"
    )
    send(compiles=[hit, miss, failed])
    assert [
        (row.number, row.total, row.phases) for row in CompileEvent.objects.order_by("number")
    ] == [
        (0, 4.0, {"dynamo": 0.5}),
        (1, 6.0, {"dynamo": 0.5}),
        (2, 1.0, {"dynamo": 0.5}),
    ]
    row = ProcessMinute.objects.get()
    assert (row.compiles, row.recompiles, row.compile_failures, row.request_compiles) == (
        3,
        1,
        1,
        1,
    )
    assert (row.cache_hits, row.cache_misses, row.hit_seconds, row.miss_seconds) == (1, 1, 4.0, 6.0)
    assert (row.compile_seconds, row.saved_seconds) == (11.0, 9.0)


def test_an_impossible_duration_is_unknown_and_adds_nothing(send: Send) -> None:
    absurd = replace(
        compiled(END - 30, 1e12, cache={"fx": "miss"}, saved=1e14),
        seconds={"total": 1e12, "inductor": 1e13, "dynamo": 0.5},
    )
    send(compiles=[absurd, compiled(END - 20, 6.0, cache={"fx": "miss"})])
    first, second = CompileEvent.objects.order_by("number")
    assert (first.total, first.saved, first.phases, second.total) == (
        None,
        None,
        {"dynamo": 0.5},
        6.0,
    )
    row = ProcessMinute.objects.get()
    assert (row.compiles, row.compile_seconds, row.miss_seconds, row.saved_seconds) == (
        2,
        6.0,
        6.0,
        0.0,
    )


def test_gauges_keep_the_largest_value_and_absent_gauges_remain_absent(send: Send) -> None:
    send(
        seq=1,
        gauges=Gauges(
            devices=[Device(0, 10, 20, None, 0.5), Device(1, 15, 18, None, None)], host_rss=None
        ),
    )
    send(seq=2, gauges=Gauges(devices=[Device(0, 12, 30, None, 0.25)]), end=END - 1, window=1.0)
    row = ProcessMinute.objects.get()
    assert (
        row.gpu_allocated,
        row.gpu_peak,
        row.gpu_reserved,
        row.gpu_utilisation,
        row.host_rss,
    ) == (15, 30, None, 0.5, None)
    assert (row.windows, row.covered) == (2, 61.0)


def test_a_cold_start_is_completed_by_later_reports_in_any_order(send: Send) -> None:
    started = END - 660
    send(
        seq=2,
        facts=[
            Fact("ready", started + 100.0, {}),
            Fact("mark", started + 40.0, {"name": "weights loaded"}),
        ],
    )
    send(seq=1, end=END - 60, compiles=[compiled(started + 80, 30.0)])
    start = ColdStart.objects.get()
    assert start.total == pytest.approx(100.0)
    assert start.phases["before_compiling"] == pytest.approx(50.0)
    assert start.phases["compiling"] == pytest.approx(30.0)
    assert start.phases["marks"] == {"weights loaded": pytest.approx(40.0)}
    assert start.unaccounted == pytest.approx(20.0)


def test_a_finding_is_grouped_over_versions_and_instances(send: Send) -> None:
    finding = Finding("graph_break", "Tensor.item() at 0x7f00", "ranker/model.py:61", 3)
    send(findings=[finding, replace(finding, text="Tensor.item() at 0x55ff", count=2)])
    send(findings=[finding], instance=1, version="2", end=END - 60)
    stored = StoredFinding.objects.get()
    assert stored.count == 8
    assert (stored.first_version.name, stored.last_version.name) == ("2", "1")
    assert sorted(FindingVersion.objects.values_list("version__name", "count")) == [
        ("1", 5),
        ("2", 3),
    ]
    assert sorted(FindingInstance.objects.values_list("count", flat=True)) == [3, 5]


def test_an_eager_fallback_is_stored_on_the_instance_and_as_a_finding(send: Send) -> None:
    data = {
        "frame": "score",
        "cause": "limit",
        "reason": "x.size(0) == 96",
        "file": "ranker/score.py",
        "line": 118,
    }
    send(seq=2, facts=[Fact("latched_eager", END - 5, data)])
    send(seq=1, end=END - 60, facts=[Fact("latched_eager", END - 65, data)])
    [latched] = Instance.objects.get().latched_eager
    assert latched == {**data, "at": END - 65}
    assert StoredFinding.objects.get().kind == "latched_eager"
    assert StoredFinding.objects.get().where == "ranker/score.py:118"


def test_an_older_report_never_replaces_a_newer_one(send: Send) -> None:
    send(
        seq=5,
        gauges=Gauges(compiling_for=0.0),
        losses=Losses(internal_errors=4, rejected_windows=1),
    )
    send(
        seq=3,
        end=END - 120,
        gauges=Gauges(compiling_for=77.0),
        losses=Losses(internal_errors=2, rejected_windows=2),
    )
    instance = Instance.objects.get()
    assert (
        instance.last_seq,
        instance.compiling_for,
        instance.internal_errors,
        instance.rejected_windows,
    ) == (5, 0.0, 4, 2)
    assert instance.last_minute - instance.first_minute == 2
    assert instance.last_seen_at.timestamp() == END


def test_the_compilation_in_progress_comes_from_the_newest_report(send: Send) -> None:
    send(seq=3, gauges=Gauges(compiling_for=77.0, compiling_frame="score", compiling_usual=4.5))
    send(seq=2, end=END - 60, gauges=Gauges(compiling_for=17.0, compiling_frame="embed"))
    instance = Instance.objects.get()
    assert (instance.compiling_for, instance.compiling_frame, instance.compiling_usual) == (
        77.0,
        "score",
        4.5,
    )
    send(seq=4, gauges=Gauges(compiling_for=0.0))
    instance.refresh_from_db()
    assert (instance.compiling_for, instance.compiling_frame, instance.compiling_usual) == (
        0.0,
        "",
        None,
    )


def test_a_compilation_keeps_its_mode_and_its_reason(send: Send) -> None:
    event = replace(
        compiled(END - 100, 2.0),
        reason_kind="race",
        backend="inductor",
        mode="max-autotune",
        dynamic="no",
        fullgraph=True,
    )
    send(compiles=[event, compiled(END - 90, 2.0)])
    first, second = CompileEvent.objects.order_by("at")
    assert (first.reason_kind, first.backend, first.mode, first.dynamic, first.fullgraph) == (
        "race",
        "inductor",
        "max-autotune",
        "no",
        True,
    )
    assert (second.reason_kind, second.backend, second.dynamic, second.fullgraph) == (
        "",
        "",
        "",
        None,
    )


def test_a_long_window_adds_to_hours_and_to_no_minute(send: Send) -> None:
    send(window=1800.0, compiles=[compiled(END - 100, 2.0)])
    assert not RegionMinute.objects.exists()
    assert not VersionMinute.objects.exists()
    assert not ProcessMinute.objects.exists()
    assert not VersionProcessMinute.objects.exists()
    assert VersionHour.objects.get().calls == 100
    assert VersionProcessHour.objects.get().compiles == 1
    assert CompileEvent.objects.count() == 1
    assert ModelVersion.objects.get().last_minute == 0


def test_a_wrong_clock_is_corrected(make_request: MakeRequest, store_reports: Store) -> None:
    request = make_request(end=END - 600, minutes=1)
    store_reports(replace(request, sent=NOW - 600))
    fold_all()
    assert RegionMinute.objects.get().minute == END // 60 - 1
    assert Instance.objects.get().clock_offset == 600.0


def test_simulated_data_marks_its_model(make_request: MakeRequest, store_reports: Store) -> None:
    store_reports(make_request(simulated=True))
    fold_all()
    assert WatchedModel.objects.get().simulated
    assert Instance.objects.get().simulated


def test_an_unknown_reason_to_run_eager_counts_as_unknown(
    send: Send, make_request: MakeRequest
) -> None:
    region = make_request().reports[0].regions[0]
    send(
        regions=[replace(region, calls=10, compiled=3, eager_by={"limit": 4, "moon": 2}, unknown=1)]
    )
    row = RegionMinute.objects.get()
    assert (row.calls, row.compiled, row.eager_limit, row.unknown) == (10, 3, 4, 3)
