"""Responses and logs of vLLM 0.32.0 on a CPU, and output of SGLang 0.5.23's own collector, are read
with the engines' own counts."""

from __future__ import annotations

import pytest

from dashboard.common import clock
from dashboard.fleet.fold.sketch_columns import merge_packed_by_key
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Instance, RegionMinute, Series
from dashboard.ingest.models import EngineTarget
from dashboard.ingest.scrapers.metric_names import SGLANG, VLLM
from dashboard.ingest.scrapers.parser import snapshot_read
from dashboard.ingest.scrapers.services import engine_add, engine_read
from dashboard.ingest.scrapers.startup_logs import stages_read
from dashboard.projects.models import Project
from tests.architecture.tree import REPOSITORY

SAMPLES = REPOSITORY / "tests/data/engines"
BEGIN = 1_795_446_400.0
STARTED = 1_795_446_241.61
COUNTED = {
    "request": (100, 28.165803, 2400),
    "first token": (100, 2.771921, None),
    "next token": (2300, 25.434886, None),
}


@pytest.mark.django_db
def test_the_counters_of_a_real_vllm_are_stored(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred completions of 24 tokens lie between the two responses; the seconds are vLLM's own
    sums."""
    address = "https://llm.example.com/metrics"
    engine_add(project=project, url=address, engine="vllm", model="tiny", version="1")
    for second, name in ((0, "before"), (20, "after")):
        monkeypatch.setattr(clock, "unix", lambda second=second: BEGIN + second)
        text = (SAMPLES / f"vllm-0.32.0-{name}.txt").read_text()
        assert engine_read(target=EngineTarget.objects.get(), get=lambda _, text=text: text)
        assert EngineTarget.objects.get().trouble == ""
    fold_all()
    for region, (calls, seconds, tokens) in COUNTED.items():
        series = Series.objects.get(region=region).pk
        row = RegionMinute.objects.get(series_id=series)
        sketch = merge_packed_by_key([(0, row.latency)])[0]
        assert (row.calls, row.unknown, row.items, sketch.count) == (calls, calls, tokens, calls), (
            region
        )
        assert sketch.sum == pytest.approx(seconds, abs=1e-5)
    assert Instance.objects.get().started_at.timestamp() == pytest.approx(STARTED, abs=0.01)


def test_the_real_collector_of_sglang_is_read_over_all_its_labels() -> None:
    found = snapshot_read((SAMPLES / "sglang-0.5.23.txt").read_text(), SGLANG)
    assert found.absent == [] and found.tokens == 2000
    assert {name: sum(one.counts) for name, one in found.parts.items()} == {
        "request": 40,
        "first token": 41,
        "next token": 2000,
    }
    assert {name: round(one.total, 6) for name, one in found.parts.items()} == {
        "request": 59.0,
        "first token": 4.37,
        "next token": 14.0,
    }


@pytest.mark.parametrize("spoiled", ["NaN", "-1", "1e300"])
def test_a_failure_count_with_an_invalid_part_is_unknown(spoiled: str) -> None:
    """If the invalid part were ignored, its failures would appear later all at once."""
    text = "# TYPE vllm:request_success_total counter\n" + "".join(
        f'vllm:request_success_total{{engine="{engine}",finished_reason="error"}} {count}\n'
        for engine, count in enumerate(("100", spoiled))
    )
    assert snapshot_read(text, VLLM).failed is None
    assert snapshot_read(text.replace(spoiled, "7"), VLLM).failed == 107


CARD = """INFO 11-23 15:05:12 [monitor.py:63] [backbone] torch.compile took 12.25 s in total
INFO 11-23 15:05:12 [monitor.py:63] [backbone] torch.compile took 11.00 s in total
INFO 11-23 15:05:14 [monitor.py:63] [eagle_head] torch.compile took 0.50 s in total
INFO 11-23 15:05:30 [gpu_model_runner.py:6582] Graph capturing finished in 4 secs, took 0.45 GiB
INFO 11-23 15:05:31 [mm_encoder_model_runner.py:95] Encoder graph capturing finished in 2 secs, took 0.10 GiB (3 graphs)
INFO 11-23 15:05:31 [core.py:402] init engine (profile, create kv cache, warmup model) took 20.03 s (compilation: 12.75 s)
"""
"""Log lines of vLLM 0.32.0 with a graphics card: two parts on two ranks, and graphs of an
encoder."""
TOGETHER = (
    "INFO [backbone] torch.compile and initial profiling/warmup run together took 7.50 s in total\n"
)
RUNNERS = """[2026-11-22 12:29:20] Capture target prefill CUDA graph end. elapsed=3.00 s, mem usage=0.50 GB, avail mem=0.53 GB.
[2026-11-22 12:29:28] Capture target decode CUDA graph end. bs=[1, 2, 4], elapsed=7.25 s, mem usage=0.93 GB, avail mem=0.53 GB.
"""
"""Log lines of SGLang 0.5.23: the batch sizes may come before the seconds."""


@pytest.mark.parametrize(
    ("log", "stages"),
    [
        ((SAMPLES / "vllm-0.32.0.log").read_text(), {"engine init": 60.66}),
        (CARD, {"torch.compile": 12.75, "CUDA graphs": 6.0, "engine init": 20.03}),
        (TOGETHER, {"torch.compile": 7.5}),
        (RUNNERS, {"CUDA graphs": 10.25}),
    ],
)
def test_a_log_is_read_in_the_format_of_its_release(log: str, stages: dict[str, float]) -> None:
    assert stages_read(log.splitlines()) == stages
