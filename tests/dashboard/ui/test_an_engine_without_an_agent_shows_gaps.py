"""The pages of an engine that has no agent: failures and compilations, which it does not tell, are absent and not zero."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.models import ModelVersion
from dashboard.fleet.services import fold_all
from dashboard.ingest.engines.services import engine_add, engine_read
from dashboard.ingest.models import EngineTarget
from dashboard.projects.models import Project
from tests.dashboard.ingest.test_an_engine_without_an_agent_is_read import ADDRESS, sample

UNTOLD = ("errors", "recompiles", "compile", "eager")


@pytest.fixture
def version(project: Project, monkeypatch: pytest.MonkeyPatch) -> ModelVersion:
    """A version of which two readings of a scraped engine are known."""
    now = clock.unix()
    engine_add(project=project, url=ADDRESS, engine="vllm", model="chat", version="v1", gpu="NVIDIA H200")
    for ago, times in ((300.0, 1), (240.0, 3)):
        with monkeypatch.context() as then:
            then.setattr(clock, "unix", lambda at=now - ago: at)
            text = sample("vllm", started=now - 3600, times=times)
            engine_read(target=EngineTarget.objects.get(), get=lambda _, text=text: text)
            fold_all()
    return ModelVersion.objects.get(name="v1")


def drawn(client: Client, version: ModelVersion) -> dict[str, list[Any]]:
    """The values of each chart of the model, those of this version."""
    charts = client.get(f"/p/ranking/models/{version.model_id}.json").json()["charts"]
    return {chart["key"]: [value for line in chart["lines"] for value in line["values"] if value is not None] for chart in charts}


def test_what_an_engine_does_not_tell_has_no_value_on_the_model_page(signed_in: Client, version: ModelVersion) -> None:
    values = drawn(signed_in, version)
    assert [values[key] for key in UNTOLD] == [[]] * len(UNTOLD) and values["p50"] and values["throughput"]
