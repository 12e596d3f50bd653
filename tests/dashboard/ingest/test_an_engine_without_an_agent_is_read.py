"""Metrics of vLLM and SGLang become reports: counted once, by the engine's own buckets, and marked
as unknown if the engine does not report them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from dashboard.accounts.models import AuditEntry
from dashboard.common import clock
from dashboard.fleet.fold.sketch_columns import merge_packed_by_key
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import CompileEvent, Instance, RegionMinute, Series
from dashboard.fleet.selectors.instances.instance_states import list_missing_capabilities
from dashboard.ingest.models import EngineTarget, InboxRow
from dashboard.ingest.scrapers.histogram import build_sketch, find_widest_ratio
from dashboard.ingest.scrapers.metric_names import SGLANG, VLLM
from dashboard.ingest.scrapers.parser import MetricsParseError, snapshot_read
from dashboard.ingest.scrapers.services import EngineError, engine_add, engine_read, engines_read
from dashboard.projects.models import Project
from tests.architecture.tree import REPOSITORY
from tests.dashboard.common.wire_server import answering, wire_server

SAMPLES = REPOSITORY / "tests/data/engines"
ADDRESS = "https://llm.example.com/metrics"
HERE = 1_795_000_000.0


def sample(engine: str, *, started: float = HERE - 3600, times: int = 1) -> str:
    """A recorded response with all counters multiplied by `times`."""
    text = (SAMPLES / f"{engine}.txt").read_text().replace("START", f"{started}")
    counted = re.compile(r"^(\S+(?:_bucket|_count|_sum|_total)\{.*\}) (\S+)$", re.MULTILINE)
    return counted.sub(lambda found: f"{found[1]} {float(found[2]) * times}", text)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the time, in seconds after HERE."""
    return lambda seconds: monkeypatch.setattr(clock, "unix", lambda: HERE + seconds)


@pytest.fixture
def target(project: Project, at: Callable[[float], None]) -> EngineTarget:
    at(0)
    return engine_add(
        project=project, url=ADDRESS, engine="vllm", model="chat", version="v1", gpu="NVIDIA H200"
    )


def read(target: EngineTarget, text: str) -> bool:
    target.refresh_from_db()
    found = engine_read(target=target, get=lambda _: text)
    target.refresh_from_db()
    return found


def calls(region: str = "request") -> int:
    fold_all()
    series = Series.objects.filter(region=region).values_list("pk", flat=True)
    return sum(
        RegionMinute.objects.filter(series_id__in=list(series)).values_list("calls", flat=True)
    )


@pytest.mark.django_db
def test_changes_between_two_scrapes_are_counted_once(
    target: EngineTarget, at: Callable[[float], None]
) -> None:
    assert read(target, sample("vllm")) and not InboxRow.objects.exists()
    at(15)
    assert read(target, sample("vllm", times=3)) and calls() == 200 and calls("first token") == 200
    at(30)
    assert read(target, sample("vllm", times=3)) and calls() == 200
    at(45)
    stale = EngineTarget.objects.get()
    assert read(target, sample("vllm", times=4)) and calls() == 300
    assert not engine_read(target=stale, get=lambda _: sample("vllm", times=4)) and calls() == 300
    series = Series.objects.select_related("stratum").get(region="request")
    assert (series.stratum.runtime, series.stratum.mode, series.stratum.gpu, series.outermost) == (
        "vllm",
        "engine",
        "NVIDIA H200",
        True,
    )
    assert (
        series.bucket.startswith("buckets ")
        and not Series.objects.exclude(region="request").filter(outermost=True).exists()
    )
    row = RegionMinute.objects.filter(series_id=series.pk).first()
    assert row and row.unknown == row.calls and row.compiled == row.sampled == 0 and row.items


@pytest.mark.django_db
def test_a_quantile_lies_in_the_bucket_of_the_true_value(
    target: EngineTarget, at: Callable[[float], None]
) -> None:
    read(target, sample("vllm"))
    at(15)
    read(target, sample("vllm", times=2))
    assert calls() == 100
    [series] = Series.objects.filter(region="request").values_list("pk", flat=True)
    sketch = merge_packed_by_key(
        (0, packed)
        for packed in RegionMinute.objects.filter(series_id=series).values_list(
            "latency", flat=True
        )
    )[0]
    median, tail = sketch.quantile(0.5), sketch.quantile(0.99)
    assert (
        median
        and tail
        and 1.0 < median <= 1.5
        and 2.0 < tail <= 2.5
        and sketch.sum == pytest.approx(118.5)
    )


@pytest.mark.django_db
def test_missing_metrics_of_an_engine_are_reported_as_unknown(
    target: EngineTarget, at: Callable[[float], None]
) -> None:
    read(target, sample("vllm"))
    at(15)
    read(target, sample("vllm", times=2))
    fold_all()
    instance = Instance.objects.get()
    assert (
        list_missing_capabilities(instance) == ["compiled_calls", "compilations"]
        and instance.agent == "scraped vllm"
        and instance.host == "llm.example.com"
    )
    answer, why = instance.capabilities["latency of request"]
    assert answer == "partly" and "300% wide" in why and instance.capabilities["errors"][0] == "no"


@pytest.mark.django_db
def test_a_restarted_engine_is_another_instance_and_loses_nothing(
    target: EngineTarget, at: Callable[[float], None]
) -> None:
    read(target, sample("vllm", times=5))
    at(15)
    read(target, sample("vllm", times=6))
    at(30)
    assert read(target, sample("vllm", started=HERE + 20, times=1))
    assert calls() == 200 and Instance.objects.count() == 2 and target.next_seq == 2


@pytest.mark.django_db
def test_processes_that_answer_in_turn_are_reported_and_not_counted(
    target: EngineTarget, at: Callable[[float], None]
) -> None:
    read(target, sample("vllm", times=5))
    at(15)
    assert read(target, sample("vllm", started=HERE - 7200, times=900))
    assert target.trouble.startswith("Several processes answer at this address") and calls() == 0


@pytest.mark.django_db
def test_an_engine_with_renamed_metrics_is_reported_and_not_counted(
    target: EngineTarget, at: Callable[[float], None]
) -> None:
    read(target, sample("vllm"))
    at(15)
    renamed = sample("vllm", times=2).replace(
        "vllm:e2e_request_latency_seconds", "vllm:request_duration_seconds"
    )
    assert read(target, renamed) and calls() == 0 and calls("first token") == 100
    assert target.trouble == (
        "The response lacks vllm:e2e_request_latency_seconds: this release may have renamed "
        "metrics. Missing metrics are not counted."
    )
    assert Instance.objects.get().capabilities["latency of request"] == [
        "no",
        "the engine does not export vllm:e2e_request_latency_seconds",
    ]
    at(30)
    assert read(target, sample("sglang")) and "no metric that begins with vllm:" in target.trouble
    at(45)
    assert (
        not read(target, "<html>not metrics</html>")
        and "not in Prometheus text format" in target.trouble
    )


FINISHED = """# TYPE vllm:request_success_total counter
vllm:request_success_total{{engine="0",finished_reason="stop",model_name="chat"}} {stop}
vllm:request_success_total{{engine="0",finished_reason="abort",model_name="chat"}} {abort}
"""
FAILED = (
    'vllm:request_success_total{{engine="0",finished_reason="error",model_name="chat"}} {error}\n'
)


def failures() -> list[tuple[str, int, int]]:
    """Mode, calls and errors of requests, by mode."""
    fold_all()
    series = dict(Series.objects.filter(region="request").values_list("pk", "stratum__mode"))
    counted: dict[str, list[int]] = {}
    for id, calls, errors in RegionMinute.objects.filter(series_id__in=list(series)).values_list(
        "series_id", "calls", "errors"
    ):
        sums = counted.setdefault(series[id], [0, 0])
        sums[0], sums[1] = sums[0] + calls, sums[1] + errors
    return [(mode, *sums) for mode, sums in sorted(counted.items())]


@pytest.mark.django_db
def test_unfinished_requests_are_errors_and_disconnected_clients_are_not(
    target: EngineTarget, at: Callable[[float], None]
) -> None:
    counters = FINISHED + FAILED
    read(target, sample("vllm") + counters.format(stop=90, abort=2, error=8))
    at(15)
    read(target, sample("vllm", times=2) + counters.format(stop=160, abort=29, error=11))
    assert failures() == [("engine, errors told", 100, 3)]
    answer, why = Instance.objects.get().capabilities["errors"]
    assert answer == "partly" and "disconnected clients" in why


@pytest.mark.django_db
def test_a_release_without_error_counts_is_unknown_even_if_it_loses_them_later(
    target: EngineTarget, at: Callable[[float], None]
) -> None:
    read(target, sample("vllm") + FINISHED.format(stop=90, abort=2))
    at(15)
    read(target, sample("vllm", times=2) + FINISHED.format(stop=190, abort=2))
    assert (
        failures() == [("engine", 100, 0)]
        and Instance.objects.get().capabilities["errors"][0] == "no"
    )
    at(30)
    read(target, sample("vllm", times=3) + (FINISHED + FAILED).format(stop=280, abort=2, error=8))
    assert failures() == [("engine", 200, 0)], (
        "counts from before the first scrape belong to no window"
    )
    at(45)
    read(target, sample("vllm", times=4) + (FINISHED + FAILED).format(stop=370, abort=2, error=18))
    assert failures() == [("engine", 200, 0), ("engine, errors told", 100, 10)]
    at(60)
    read(target, sample("vllm", times=5) + FINISHED.format(stop=470, abort=2))
    assert failures() == [("engine", 300, 0), ("engine, errors told", 100, 10)]
    assert Instance.objects.get().capabilities["errors"][0] == "no"


def test_the_documented_format_of_sglang_is_read() -> None:
    found = snapshot_read(sample("sglang"), SGLANG)
    assert found.absent == [] and found.tokens == 7557 and found.started is None
    assert {name: sum(one.counts) for name, one in found.parts.items()} == {
        "request": 50,
        "first token": 50,
        "next token": 7500,
    }
    older = sample("vllm").replace(
        "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"
    )
    assert snapshot_read(older, VLLM).absent == []


WIDE = '# TYPE x histogram\nx_bucket{le="wide"} 1\nx_count 1\nx_sum 1\n'
BROKEN = [
    "vllm:e2e_request_latency_seconds_bucket{le=",
    "a b c d",
    WIDE.replace("x", "vllm:e2e_request_latency_seconds"),
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_response_is_one_sentence(text: str) -> None:
    with pytest.raises(MetricsParseError, match="not in Prometheus text format"):
        snapshot_read(text, VLLM)


@given(
    st.lists(
        st.tuples(st.floats(1e-4, 1e3), st.integers(0, 500)),
        min_size=1,
        max_size=12,
        unique_by=lambda pair: pair[0],
    )
)
def test_any_buckets_keep_their_counts_and_their_places(pairs: list[tuple[float, int]]) -> None:
    ordered = sorted(pairs)
    bounds, counts = [bound for bound, _ in ordered], [count for _, count in ordered]
    sketch = build_sketch([*bounds, float("inf")], [*counts, 3], 1.0)
    assert sketch.count == sum(counts) + 3 and sketch.problem() is None
    middle = sketch.quantile(0.5)
    place = next(
        place for place, upto in enumerate(accumulate([*counts, 3])) if upto >= sketch.count / 2
    )
    upper = bounds[min(place, len(bounds) - 1)]
    if middle is None:  # a second bound may lie in the bin of the first one
        bound = sketch.upper_bound(0.5)
        assert bound is not None and upper * 0.97 <= bound <= upper * 1.03
        return
    lower = upper if place in (0, len(bounds)) else bounds[place - 1]
    assert lower * 0.97 <= middle <= upper * 1.05
    assert find_widest_ratio([0.1, 0.2, 0.25]) == pytest.approx(1.0)


@pytest.mark.django_db
def test_a_private_address_needs_an_exception_of_the_operator(
    project: Project, settings: Settings
) -> None:
    wanted = {"project": project, "engine": "vllm", "model": "chat", "version": "v1"}
    body = sample("vllm").encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with wire_server(answering(answer)) as server:
        address = f"http://127.0.0.1:{server.port}/metrics"
        with pytest.raises(EngineError, match="COMPILEWATCH_OUTBOUND_ALLOW"):
            engine_add(url=address, **wanted)  # type: ignore[arg-type]
        engine_add(url="https://127.0.0.1/metrics", **wanted)  # type: ignore[arg-type]
        assert engines_read() == 0 and server.connections == 0
        EngineTarget.objects.all().delete()
        settings.OUTBOUND_ALLOW = server.allow
        engine_add(url=address, **wanted)  # type: ignore[arg-type]
        assert engines_read() == 1 and server.connections == 1
    assert engines_read() == 0 and "could not be reached" in EngineTarget.objects.get().trouble


@pytest.mark.django_db
def test_engines_are_named_from_the_command_line(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command(
        "scrape", "--add", ADDRESS, "--model", "chat", "--release", "v1", "--engine", "sglang"
    )
    assert "chat v1  not read yet" in capsys.readouterr().out
    with pytest.raises(CommandError, match="model is ''"):
        call_command("scrape", "--add", ADDRESS)
    call_command("scrape", "--remove", ADDRESS)
    assert not EngineTarget.objects.exists()
    entries = AuditEntry.objects.filter(action__startswith="engine.").order_by("pk")
    assert list(entries.values_list("action", "subject")) == [
        ("engine.add", ADDRESS),
        ("engine.remove", ADDRESS),
    ]


@pytest.mark.django_db
def test_a_scraped_engine_appears_on_the_pages(
    target: EngineTarget, at: Callable[[float], None], signed_in: Client
) -> None:
    for minute in range(4):
        at(minute * 15)
        read(target, sample("vllm", times=minute + 1))
    fold_all()
    fleet = signed_in.get("/p/ranking/").content.decode()
    assert "chat" in fleet
    model = f"/p/ranking/models/{Instance.objects.get().model_id}/"
    page = signed_in.get(f"{model}instances/").content.decode()
    assert "llm.example.com" in page and "blind" in page


LOG = """INFO 11-22 09:08:05 [monitor.py:34] torch.compile takes 52.10 s in total
(EngineCore_DP0 pid=79) INFO 11-22 09:08:36 [gpu_model_runner.py:1933] Graph capturing finished in 31 secs, took 0.45 GiB
INFO 11-22 09:08:36 [core.py:167] init engine (profile, create kv cache, warmup model) took 107.64 seconds
[2026-11-22 12:29:28 TP0] Capture cuda graph end. Time elapsed: 7.23 s. avail mem=0.53 GB. mem usage=0.93 GB.
torch.compile takes nan s in total
"""


@pytest.mark.django_db
def test_a_start_up_log_gives_the_compile_time_and_counts_once(
    target: EngineTarget,
    at: Callable[[float], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "engine.log"
    file.write_text(LOG)
    with pytest.raises(CommandError, match="has not been read yet"):
        call_command("scrape", "--log", str(file), "--of", ADDRESS)
    read(target, sample("vllm"))
    for _ in range(2):
        call_command("scrape", "--log", str(file), "--of", ADDRESS)
        assert (
            "torch.compile 52.1 s, CUDA graphs 31 s, engine init 107.64 s"
            in capsys.readouterr().out
        )
    fold_all()
    [event] = CompileEvent.objects.all()
    assert (event.total, event.backend, event.outcome) == (52.1, "vllm", "ok")
    assert Instance.objects.get().capabilities["compilations"][0] == "partly"
    file.write_text("nothing of interest\n")
    with pytest.raises(CommandError, match="has no known line about"):
        call_command("scrape", "--log", str(file), "--of", ADDRESS)
