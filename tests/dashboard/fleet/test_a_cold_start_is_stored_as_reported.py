"""A cold start is stored as its agent reports it, in any order of arrival; an invalid cold start
changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from compilewatch.wire.messages import Compile, Device, Fact, Gauges, Region, Report, Request
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.common import clock
from dashboard.fleet.fold.cold_start import parse_cold_start
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import ColdStart, Finding, ProcessMinute
from dashboard.fleet.selectors.instances.instances import list_version_instances

NOW = 1_790_000_045.0
END = 1_790_000_040.0
STAGES = {
    "before init": [0.0, 0.5],
    "compile": [5.0, 7.5],
    "import torch": [0.5, 2.5],
    "weights loaded": [3.0, 1.0],
}

Send = Callable[..., None]


@pytest.fixture
def send(
    monkeypatch: pytest.MonkeyPatch,
    db: None,
    make_request: Callable[..., Request],
    store_reports: Callable[..., object],
) -> Send:
    """Sends one report with these fields and folds it."""
    monkeypatch.setattr(clock, "unix", lambda: NOW)

    def send(*, seq: int, **fields: object) -> None:
        def change(report: Report) -> None:
            for name, value in fields.items():
                setattr(report, name, value)

        request = make_request(first_seq=seq, end=END - 20 + seq, window=1.0, change=change)
        store_reports(replace(request, sent=NOW))
        fold_all()

    return send


def cold_start_fact(until_: str, total_: float, **data: Any) -> Fact:
    fields = {
        "total": total_,
        "until": until_,
        "stages": STAGES,
        "phases": {"dynamo": 1.5},
        "unaccounted": 1.0,
        **data,
    }
    return Fact("mark", END - 30, {"name": "cold start", "began": END - 60, **fields})


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_most_complete_report_wins_in_any_order(send: Send, order: tuple[int, ...]) -> None:
    reports: list[dict[str, Any]] = [
        {"facts": [cold_start_fact("first call", 12.5)]},
        {"facts": [cold_start_fact("ready", 11.0), Fact("ready", END - 31, {})]},
        {"compiles": [Compile(END - 40, "0/0", "first", "ok", seconds={"total": 2.0})]},
    ]
    for place in order:
        send(seq=place + 1, **reports[place])
    start = ColdStart.objects.get()
    assert (start.total, start.unaccounted, start.phases["until"]) == (11.0, 1.0, "ready")
    (instance,) = list_version_instances(
        project_id=start.project_id,
        version_ids=[start.version_id],
        environment=start.instance.environment,
    )
    assert instance.start is not None
    assert [name for name, _, _ in instance.start.stages] == [
        "before init",
        "import torch",
        "weights loaded",
        "compile",
    ]
    assert instance.start.phases == {"dynamo": 1.5}


def test_a_later_call_changes_nothing_and_an_earlier_one_does(
    send: Send, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    called = {"regions": [Region("forward", 3, compiled=3)]}
    asked = []
    for seq in (3, 5, 9, 1):
        with (
            django_capture_on_commit_callbacks(execute=True),
            CaptureQueriesContext(connection) as queries,
        ):
            send(seq=seq, **called)
        asked.append(sum("cold_start" in query["sql"] for query in queries.captured_queries))
    first, known, later, earlier = asked
    assert first and (known, later) == (0, 0) and earlier
    assert ColdStart.objects.get().first_call_at == clock.at(END - 19)


def test_a_cold_start_is_no_mark_of_the_job(send: Send) -> None:
    send(
        seq=1,
        facts=[cold_start_fact("ready", 9.0), Fact("mark", END - 50, {"name": "weights loaded"})],
    )
    assert list(ColdStart.objects.get().phases["marks"]) == ["weights loaded"]


@pytest.mark.parametrize(
    "data",
    [
        {"total": "9"},
        {"total": -1.0},
        {"total": float("nan")},
        {"total": True},
        {"until": "never"},
        {"until": None},
        {"total": 1e300},
    ],
)
def test_an_invalid_cold_start_is_ignored(data: dict[str, Any]) -> None:
    assert parse_cold_start(cold_start_fact("ready", 9.0, **data)) is None


@pytest.mark.parametrize(
    "stages",
    [
        None,
        [],
        "x",
        {"compile": None},
        {"compile": [1]},
        {"compile": ["a", 2]},
        {"compile": [-1, 2]},
        {"compile": [1, [2]]},
    ],
)
def test_an_invalid_stage_is_ignored(send: Send, stages: Any) -> None:
    send(
        seq=1,
        facts=[cold_start_fact("ready", 9.0, stages=stages, phases=stages, unaccounted=stages)],
    )
    start = ColdStart.objects.get()
    assert (start.total, start.phases["stages"], start.unaccounted) == (9.0, [], None)


def test_out_of_memory_events_are_counted_with_their_repetitions(send: Send) -> None:
    text = {"text": "out of memory on GPU 0", "device": 0}
    send(
        seq=1,
        facts=[
            Fact("oom", END - 20, {**text, "count": 3}),
            Fact("oom", END - 19, text),
            Fact("oom", END - 19, {"count": "x"}),
        ],
    )
    assert ProcessMinute.objects.get().ooms == 5
    assert sorted(Finding.objects.values_list("text", "count")) == [
        ("out of memory", 1),
        ("out of memory on GPU 0", 4),
    ]


def test_growth_and_the_memory_of_cuda_graphs_are_stored(send: Send) -> None:
    send(
        seq=1,
        gauges=Gauges(
            [Device(0, 1, 2, 3, None, 400), Device(1, graph_pool=100)], host_rss_slope=-5.5
        ),
    )
    send(seq=2, gauges=Gauges(host_rss_slope=2.5))
    row = ProcessMinute.objects.get()
    assert (row.gpu_graph_pool, row.host_rss_slope) == (400, 2.5)
