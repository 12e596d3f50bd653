"""An engine produces many tokens at a time: its throughput is counters over wall time, not over the
summed time of its requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment, RegionMinute, WatchedModel
from dashboard.fleet.selectors.judge_inputs.judge_minutes import read_instance_minutes
from dashboard.ingest.models import EngineTarget
from dashboard.ingest.scrapers.services import engine_add, engine_read
from dashboard.projects.models import Project
from dashboard.regressions.judge.call_metrics import items_per_second
from tests.dashboard.requests import request_make

pytestmark = pytest.mark.django_db
ADDRESS = "https://llm.example.com/metrics"
HERE = 1_795_000_020.0
EACH_S, REQUESTS_A_SECOND, TOKENS = 10.0, 1, 170
"""Ten requests run at a time, each for 10 s, and produce 170 tokens a second together."""


def answer(second: int) -> str:
    requests = REQUESTS_A_SECOND * second
    name = "vllm:e2e_request_latency_seconds"
    return "\n".join(
        [
            f"# TYPE {name} histogram",
            f'{name}_bucket{{le="5.0"}} 0',
            f'{name}_bucket{{le="15.0"}} {requests}',
            f'{name}_bucket{{le="+Inf"}} {requests}',
            f"{name}_count {requests}",
            f"{name}_sum {requests * EACH_S}",
            "# TYPE vllm:generation_tokens_total counter",
            f"vllm:generation_tokens_total {TOKENS * second}",
            "# TYPE process_start_time_seconds gauge",
            f"process_start_time_seconds {HERE - 3600}",
            "",
        ]
    )


@pytest.fixture
def model(project: Project, monkeypatch: pytest.MonkeyPatch) -> WatchedModel:
    monkeypatch.setattr(clock, "unix", lambda: HERE)
    engine_add(
        project=project, url=ADDRESS, engine="vllm", model="chat", version="v1", gpu="NVIDIA H200"
    )
    for second in range(0, 181, 20):
        monkeypatch.setattr(clock, "unix", lambda second=second: HERE + second)
        assert engine_read(
            target=EngineTarget.objects.get(), get=lambda _, second=second: answer(second)
        )
    fold_all()
    return WatchedModel.objects.get()


def test_the_page_and_its_numbers_use_wall_time(
    model: WatchedModel, signed_in: Client, project: Project
) -> None:
    assert sum(RegionMinute.objects.values_list("items", flat=True)) == TOKENS * 180
    page = f"/p/{project.slug}/models/{model.pk}"
    trends = {one["key"]: one for one in signed_in.get(f"{page}.json").json()["charts"]}
    shown = [
        value
        for line in trends["throughput"]["lines"]
        for value in line["values"]
        if value is not None
    ]
    assert shown and all(value == pytest.approx(TOKENS, rel=0.02) for value in shown)
    assert trends["throughput"]["unit"] == "items/s of wall time, per engine"


def test_the_judge_divides_by_wall_time_too(model: WatchedModel) -> None:
    deployment = Deployment.objects.get()
    rows = read_instance_minutes(
        deployment=deployment,
        baseline=None,
        from_minute=deployment.started_minute,
        to_minute=deployment.last_minute + 1,
    )
    found = [items_per_second(row) for row in rows if row.items]  # type: ignore[arg-type]
    assert found and all(value == pytest.approx(TOKENS, rel=0.02) for value in found)


def test_throughput_of_an_agents_region_remains_per_call_time(
    store_reports: Callable[..., object], project: Project
) -> None:
    store_reports(request_make(end=clock.unix() - 20.0, p50=0.01))
    fold_all()
    deployment = Deployment.objects.get()
    (row,) = read_instance_minutes(
        deployment=deployment,
        baseline=None,
        from_minute=deployment.started_minute,
        to_minute=deployment.last_minute + 1,
    )
    assert items_per_second(row) == pytest.approx(800.0, rel=0.1)  # type: ignore[arg-type]
