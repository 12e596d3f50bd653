"""The buckets of vLLM begin at 300 ms, those of its HTTP server at 10 ms: the finer buckets are
read if they cover the same requests."""

from __future__ import annotations

import pytest

from dashboard.ingest.scrapers.histogram import build_sketch
from dashboard.ingest.scrapers.metric_names import VLLM
from dashboard.ingest.scrapers.parser import Snapshot, diff_snapshots, snapshot_read
from dashboard.ingest.scrapers.to_report import build_capabilities
from tests.dashboard.ingest.recorded import FRONT, OWN, answer, truth

RECORDED = ("default", "compile", "changed")
ELSEWHERE = 'http_request_duration_seconds_count{{handler="/v1/models",method="GET"}} {0}\n'
FAST = 'http_request_duration_highr_seconds_bucket{{le="{1}"}} {0}\n'


def polled(text: str, polls: int) -> str:
    """The same response of a server whose list of models was polled this number of times, each in
    under 10 ms."""
    lines = []
    for line in text.splitlines():
        name, _, count = line.rpartition(" ")
        moved = name.startswith((f"{FRONT}_bucket", f"{FRONT}_count"))
        lines.append(f"{name} {float(count) + polls}" if moved else line)
        if line.startswith("# TYPE http_request_duration_seconds histogram"):
            lines.append(ELSEWHERE.format(polls).rstrip())
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("q", [0.5, 0.95, 0.99])
def test_each_quantile_lies_in_the_bucket_of_the_true_value(name: str, q: float) -> None:
    found = snapshot_read(answer(name), VLLM)
    fine, real = found.parts["HTTP request"], truth(name, FRONT)
    sketch = build_sketch(fine.bounds, fine.counts, fine.total)
    lower, upper = real.bucket(q)
    value = sketch.quantile(q)
    assert value is not None and lower * 0.98 <= value <= upper * 1.02
    assert sketch.count == real.count and sketch.sum / sketch.count == pytest.approx(real.mean)


@pytest.mark.parametrize("name", RECORDED)
def test_the_engines_own_histogram_gives_a_bound_and_the_mean(name: str) -> None:
    own, real = snapshot_read(answer(name), VLLM).parts["request"], truth(name, OWN)
    sketch = build_sketch(own.bounds, own.counts, own.total)
    assert real.bucket(0.5) == (0.0, 0.3) and sketch.quantile(0.5) is None
    assert sketch.sum / sketch.count == pytest.approx(real.mean)


def test_a_request_is_counted_once_with_the_time_of_the_server() -> None:
    parts = VLLM.select_parts(snapshot_read(answer("default"), VLLM).parts)
    assert [part.region for part in parts if part.outermost] == ["HTTP request"]
    assert [part.region for part in parts] == [
        "HTTP request",
        "request",
        "first token",
        "next token",
    ]
    without = VLLM.select_parts(snapshot_read(answer("default", front=False), VLLM).parts)
    assert [part.region for part in without if part.outermost] == ["request"]


@pytest.mark.parametrize(("polls", "read"), [(0, True), (60, True), (70, False), (5000, False)])
def test_a_histogram_with_mostly_other_requests_is_not_used(polls: int, read: bool) -> None:
    """Of 1,200 requests, 60 polls are under a twentieth, 70 are over a twentieth."""
    found = snapshot_read(polled(answer("default"), polls), VLLM)
    assert ("HTTP request" in found.parts) is read and "request" in found.parts and not found.absent


@pytest.mark.parametrize(
    "name", ["http_request_duration_seconds", "http_request_duration_highr_seconds"]
)
def test_without_a_histogram_of_the_server_the_engines_own_is_read(name: str) -> None:
    text = "\n".join(
        line
        for line in answer("default").splitlines()
        if f"{name}_" not in line and not line.endswith(f"{name} histogram")
    )
    assert set(snapshot_read(text + "\n", VLLM).parts) == {"request", "first token", "next token"}


def test_the_difference_of_two_responses_covers_both_histograms() -> None:
    first, second = (snapshot_read(answer("default", times=times), VLLM) for times in (1, 3))
    kept = Snapshot.from_json(first.as_json())
    found = diff_snapshots(kept, second)
    assert sum(found.parts["HTTP request"].counts) == 2 * truth("default", FRONT).count
    assert sum(found.parts["request"].counts) == 2 * truth("default", OWN).count


def test_the_capability_names_the_histogram_of_a_latency() -> None:
    bounds = {
        name: one.bounds for name, one in snapshot_read(answer("default"), VLLM).parts.items()
    }
    assert build_capabilities(VLLM, bounds)["latency of HTTP request"][0] == "partly"
    assert "latency of HTTP request" not in build_capabilities(VLLM, {"request": bounds["request"]})
