"""Three recorded responses of a vLLM on a CPU: the stored values of each equal the lines of
vLLM."""

from __future__ import annotations

import re

import pytest

from dashboard.common import clock
from dashboard.fleet.fold.sketch_columns import merge_packed_by_key
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import RegionMinute, Series
from dashboard.ingest.models import EngineTarget
from dashboard.ingest.scrapers.services import engine_add, engine_read
from dashboard.projects.models import Project
from tests.dashboard.ingest.recorded import FRONT, OWN, SAMPLES, answer, truth

BEGIN = 1_795_446_400.0
HISTOGRAMS = {
    "HTTP request": FRONT,
    "request": OWN,
    "first token": "vllm:time_to_first_token_seconds",
    "next token": "vllm:inter_token_latency_seconds",
}


def counted(name: str, family: str) -> float:
    """The sum of one counter over its labels, from the text alone."""
    text = (SAMPLES / f"vllm-http-{name}.txt").read_text()
    return sum(
        float(value) for value in re.findall(rf"^{family}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE)
    )


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["default", "compile", "changed"])
def test_calls_seconds_and_tokens_match_the_counters_of_vllm(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    engine_add(
        project=project,
        url="https://llm.example.com/metrics",
        engine="vllm",
        model="tiny",
        version="1",
    )
    for second, times in ((0, 0), (20, 1)):
        monkeypatch.setattr(clock, "unix", lambda second=second: BEGIN + second)
        text = answer(name, times=times, started=BEGIN - 60)
        assert engine_read(target=EngineTarget.objects.get(), get=lambda _, text=text: text)
        assert EngineTarget.objects.get().trouble == ""
    fold_all()
    for region, family in HISTOGRAMS.items():
        row, real = (
            RegionMinute.objects.get(series_id=Series.objects.get(region=region).pk),
            truth(name, family),
        )
        sketch = merge_packed_by_key([(0, row.latency)])[0]
        assert (row.calls, sketch.count) == (real.count, real.count), region
        assert sketch.sum / sketch.count == pytest.approx(real.mean, rel=1e-6), region
    [tokens] = {
        row.items
        for row in RegionMinute.objects.filter(
            series_id=Series.objects.get(region="HTTP request").pk
        )
    }
    assert tokens == counted(name, "vllm:generation_tokens_total")
