"""Pages of an engine without an agent: failures and compilations, which the engine does not report,
are missing and not zero."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment, ModelVersion
from dashboard.fleet.selectors.judge_inputs.execution_modes import read_mode_changes
from dashboard.fleet.selectors.judge_inputs.judge_minutes import read_instance_minutes
from dashboard.ingest.models import EngineTarget
from dashboard.ingest.scrapers.services import engine_add, engine_read
from dashboard.projects.models import Project
from tests.dashboard.ingest.test_an_engine_without_an_agent_is_read import ADDRESS, sample

UNREPORTED = ("recompiles", "compile", "eager")


REQUEST_COUNTERS = """# TYPE vllm:request_success_total counter
vllm:request_success_total{{finished_reason="stop",model_name="chat"}} {}
vllm:request_success_total{{finished_reason="error",model_name="chat"}} {}
"""


@pytest.fixture(params=[False, True], ids=["failures not counted", "failures counted"])
def counts(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def version(counts: bool, project: Project, monkeypatch: pytest.MonkeyPatch) -> ModelVersion:
    """A version with two readings of a scraped engine."""
    now = clock.unix()
    engine_add(
        project=project, url=ADDRESS, engine="vllm", model="chat", version="v1", gpu="NVIDIA H200"
    )
    for ago, times in ((300.0, 1), (240.0, 3)):
        with monkeypatch.context() as then:
            then.setattr(clock, "unix", lambda at=now - ago: at)
            text = sample("vllm", started=now - 3600, times=times)
            text += REQUEST_COUNTERS.format(times * 90, times * 10) if counts else ""
            engine_read(target=EngineTarget.objects.get(), get=lambda _, text=text: text)
            fold_all()
    return ModelVersion.objects.get(name="v1")


def read(
    project: Project, version: str, since: float, ends: str, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    """Five minutes of an engine that runs this version; `ends` is its count of requests by
    result."""
    engine_add(
        project=project,
        url=ADDRESS,
        engine="vllm",
        model="chat",
        version=version,
        gpu="NVIDIA H200",
    )
    for place in range(6):
        with monkeypatch.context() as then:
            then.setattr(clock, "unix", lambda at=since + 60 * place: at)
            text = sample("vllm", started=since - 60, times=place + 1) + ends.format(
                90 * place, 10 * place
            )
            engine_read(target=EngineTarget.objects.get(), get=lambda _, text=text: text)
            fold_all()
    return Deployment.objects.get(version__name=version)


@pytest.mark.parametrize(
    ("before", "errors"),
    [("", {0}), (REQUEST_COUNTERS, {10})],
    ids=["only the newer counts", "both count"],
)
def test_failures_that_only_a_newer_engine_counts_are_not_a_difference(
    project: Project, monkeypatch: pytest.MonkeyPatch, before: str, errors: set[int]
) -> None:
    now = clock.unix()
    baseline = read(project, "v1", now - 3600, before, monkeypatch)
    candidate = read(project, "v2", now - 1800, REQUEST_COUNTERS, monkeypatch)
    assert read_mode_changes(deployment=candidate, baseline=baseline) == {}
    span = {"from_minute": int(now // 60) - 70, "to_minute": int(now // 60)}
    rows = read_instance_minutes(deployment=candidate, baseline=baseline, **span)
    assert {row.errors for row in rows if row.region == "request"} == errors
    assert len({row.stratum for row in rows}) == 1 and {row.arm for row in rows} == {
        "baseline",
        "candidate",
    }


def drawn(client: Client, version: ModelVersion) -> dict[str, list[Any]]:
    """The chart values of this version."""
    charts = client.get(f"/p/ranking/models/{version.model_id}.json").json()["charts"]
    return {
        chart["key"]: [
            value for line in chart["lines"] for value in line["values"] if value is not None
        ]
        for chart in charts
    }


def test_metrics_that_an_engine_does_not_report_have_no_value_on_the_model_page(
    signed_in: Client, version: ModelVersion, counts: bool
) -> None:
    values = drawn(signed_in, version)
    assert values["errors"] == ([10.0] if counts else [])
    assert (
        [values[key] for key in UNREPORTED] == [[]] * len(UNREPORTED)
        and values["p50"]
        and values["throughput"]
    )


def test_metrics_that_an_engine_does_not_report_lead_to_no_claim(
    signed_in: Client, version: ModelVersion
) -> None:
    address = f"/p/ranking/models/{version.model_id}/"
    page = "".join(
        signed_in.get(f"{address}{tab}/?version={version.pk}").content.decode()
        for tab in ("compiles", "startup")
    )
    assert "has run compiled code yet" not in page and "Nothing was looked up" not in page
    assert (
        "has reported a compiled call or readiness yet" in page
        and "Compilations may have occurred without a report." in " ".join(page.split())
    )
    assert "no compilation<" not in signed_in.get("/p/ranking/").content.decode()
