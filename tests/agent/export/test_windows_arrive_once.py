"""Recorded calls arrive at the dashboard, each window once, with the identity of the process."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable

import compilewatch
from compilewatch import agent
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import COLD_START

from tests.agent.conftest import KEY
from tests.agent.server import Dashboard

Start = Callable[..., None]


def nothing() -> None:
    """The job's function."""


def test_calls_findings_and_facts_arrive(dashboard: Dashboard, start: Start) -> None:
    start()
    call = compilewatch.watch(nothing, name="forward")
    for _ in range(100):
        call()
    RECORDER.record_finding("graph_break", "print", "a.py:1")
    RECORDER.record_finding("graph_break", "print", "a.py:1", 2)
    compilewatch.ready()
    compilewatch.mark("weights", step=3)
    dashboard.wait(lambda it: it.calls("forward") == 100)
    compilewatch.shutdown()
    reports = dashboard.reports()
    assert sum(finding.count for report in reports for finding in report.findings) == 3
    facts = {
        fact.kind: fact.data
        for report in reports
        for fact in report.facts
        if fact.data.get("name") != COLD_START
    }
    assert facts == {"ready": {}, "mark": {"name": "weights", "step": 3}}
    seqs = sorted(seq for report in reports for seq in report.seq)
    assert seqs == [seq for number in range(1, len(reports) + 1) for seq in (number, number)]
    assert all(before.window[1] == after.window[0] for before, after in itertools.pairwise(reports))


def test_the_request_identifies_its_sender(dashboard: Dashboard, start: Start) -> None:
    start(environment="staging", kind="training", simulated=True)
    dashboard.wait(lambda it: bool(it.requests))
    agent.shutdown()
    request, headers = dashboard.requests[0], dashboard.headers[0]
    assert dashboard.paths[0] == "/api/v1/reports"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert (headers["Content-Type"], headers["Content-Encoding"]) == ("application/json", "gzip")
    instance = request["instance"]
    assert len(instance["id"]) == 26
    assert (
        instance["model"],
        instance["environment"],
        instance["kind"],
        instance["simulated"],
    ) == ("ranker", "staging", "training", True)
    assert instance["python"] == platform.python_version()
    assert instance["capabilities"]["memory"][0] in ("yes", "partly")
    assert {request["instance"]["id"] for request in dashboard.requests} == {instance["id"]}


def test_host_memory_is_a_gauge(dashboard: Dashboard, start: Start) -> None:
    start()
    dashboard.wait(lambda it: any(report.gauges.host_rss for report in it.reports()))
    assert max(report.gauges.host_rss or 0 for report in dashboard.reports()) > 10 << 20


def test_a_new_start_is_another_instance(dashboard: Dashboard, start: Start) -> None:
    start()
    dashboard.wait(lambda it: len(it.requests) >= 1)
    start(version="2")
    dashboard.wait(lambda it: len({request["instance"]["id"] for request in it.requests}) == 2)
