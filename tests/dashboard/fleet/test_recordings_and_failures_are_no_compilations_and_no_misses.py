"""A recorded CUDA graph is no compilation, and a failed compilation is no cache miss, in the counts
of a process and in all queries over compilations. A miss of either graph cache is a miss in all
queries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from compilewatch.wire.messages import Compile, Report, Request

from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows, fetch_rows_together
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import CompileEvent, Deployment, Instance, ProcessMinute
from dashboard.fleet.selectors.compilations.cache_answers import (
    parse_version_answers,
    query_version_answers,
)
from dashboard.fleet.selectors.compilations.cache_miss_costs import read_miss_costs
from dashboard.fleet.selectors.compilations.compilations import (
    Recordings,
    parse_recordings,
    parse_version_compilations,
    query_recordings,
    query_version_compilations,
    read_process_answers,
)
from dashboard.fleet.selectors.compilations.compile_events import filter_compile_events
from dashboard.fleet.selectors.instances.instance_detail import read_instance_history
from dashboard.fleet.selectors.jobs import read_compilation_rows
from dashboard.ui.pages.compiles.cache_misses import misses_card
from dashboard.ui.pages.version.queries import read_version_data

NOW = 1_790_000_045.0
END = 1_790_000_040.0
BOTH = {"fx": "miss", "aot": "miss"}
NO_RUN = "no earlier run is known"

pytestmark = pytest.mark.django_db


def compile_(kind: str, outcome: str, seconds: dict[str, float], **fields: Any) -> Compile:
    return Compile(
        END - 30,
        "0/0",
        kind,
        outcome,
        frame="forward",
        file="model.py",
        line=7,
        seconds=seconds,
        **fields,
    )


FAILED = [
    compile_(
        "first", outcome, {"total": 1.0}, cache=BOTH, miss=NO_RUN, key="aa", reason_kind="failure"
    )
    for outcome in ("raised", "raised", "suppressed", "skipped")
]
RECORDED = [
    compile_("cuda_graph", "ok", {"total": 0.25, "cuda_graphs": 0.25}, cache=BOTH, miss=NO_RUN),
    compile_(
        "autotune", "ok", {"total": 0.5, "cuda_graphs": 0.5}
    ),  # the format of an agent that does not report recordings
]
COMPILED = [
    compile_(
        "first",
        "ok",
        {"total": 4.0},
        cache={"fx": "hit", "aot": "miss"},
        miss="aot alone",
        key="bb",
    ),
    compile_("autotune", "ok", {"total": 2.0, "autotune": 1.5, "cuda_graphs": 0.5}),
]


@pytest.fixture
def instance(
    monkeypatch: pytest.MonkeyPatch,
    make_request: Callable[..., Request],
    store_reports: Callable[..., object],
) -> Instance:
    """A process that reports all of them."""
    monkeypatch.setattr(clock, "unix", lambda: NOW)

    def change(report: Report) -> None:
        report.compiles = [*FAILED, *RECORDED, *COMPILED]

    request = make_request(
        version="1", instance=0, first_seq=1, end=END, window=60.0, change=change
    )
    request.sent = NOW
    store_reports(request)
    fold_all()
    return Instance.objects.get()


def within(instance: Instance) -> dict[str, Any]:
    minute = int(END // 60)
    span = {"first": minute - 60, "last": minute + 1}
    return {
        "project_id": instance.project_id,
        "version_ids": [instance.version_id],
        "environment": instance.environment,
        **span,
    }


def test_the_counts_of_the_process_contain_neither(instance: Instance) -> None:
    row = ProcessMinute.objects.get()
    assert (row.compiles, row.compile_failures, row.compile_seconds) == (6, 3, 10.0)
    assert (row.cache_hits, row.cache_misses, row.miss_seconds) == (0, 1, 4.0)
    assert (row.recordings, row.recording_seconds) == (2, 0.75)


def test_lists_of_compilations_contain_no_recording(instance: Instance) -> None:
    kinds = {"first", "autotune"}
    rows = list(filter_compile_events(**within(instance)))
    assert (len(rows), {row.kind for row in rows}) == (6, kinds)
    events, _ = read_instance_history(instance)
    assert (len(events), {row.kind for row in events}) == (6, kinds)
    assert len(read_compilation_rows(project_id=instance.project_id, instances=[instance])) == 6
    assert CompileEvent.objects.filter(kind="cuda_graph").count() == 2


def test_the_version_counts_its_recordings_separately(instance: Instance) -> None:
    since = clock.at(END) - timedelta(hours=2)
    assert read(instance, since) == ([6], False, (2, 0.75))
    assert read(instance, since + timedelta(days=2)) == ([0], False, (0, 0.0))


def read(instance: Instance, since: datetime) -> tuple[list[int], bool, Recordings]:
    """The number of compilations, whether more exist, and the recordings."""
    place: dict[str, Any] = {
        "project_id": instance.project_id,
        "version_id": instance.version_id,
        "environment": instance.environment,
    }
    compiled, recorded = fetch_rows_together(
        query_version_compilations(since=since, **place), query_recordings(since=since, **place)
    )
    events, cut = parse_version_compilations(compiled)
    return [len(events)], cut, parse_recordings(recorded)


def test_no_query_counts_them_as_misses(instance: Instance) -> None:
    since = clock.at(END) - timedelta(hours=2)
    place = {"project_id": instance.project_id}
    answers = read_process_answers(instance_ids=[instance.pk], since=since, **place)
    assert [
        (one.key, one.misses, one.hits, one.missed_seconds)
        for one in answers
        if one.misses or one.hits
    ] == [("bb", 1, 0, 4.0)]
    assert [
        (cost.cause, cost.compilations) for cost in read_miss_costs(now=clock.now(), **place)
    ] == [("aot alone", 1)]
    answered = parse_version_answers(fetch_rows(query_version_answers(**within(instance))))
    fields = [(one.answers, one.miss, one.compilations) for one in answered if one.answers]
    assert fields == [({"fx": "hit", "aot": "miss"}, "aot alone", 1)]
    ranks = read_compilation_rows(instances=[instance], **place)
    assert sorted(row.cache for row in ranks) == ["", "", "", "", "", "miss"]


def test_a_process_with_only_failures_is_no_warm_process_to_compare_with(
    instance: Instance, make_request: Callable[..., Request], store_reports: Callable[..., object]
) -> None:
    def change(report: Report) -> None:
        report.compiles = FAILED

    failed = make_request(version="1", instance=1, first_seq=1, end=END, window=60.0, change=change)
    failed.sent, failed.instance.started = NOW, END - 7200.0
    store_reports(failed)
    fold_all()
    data, _ = read_version_data(
        model=instance.model, deployment=Deployment.objects.get(), baseline=None
    )
    (found,) = misses_card(data.own, data.processes, data.answers).rows
    assert (found.newest.cause, found.newest.against) == ("aot alone", "")
