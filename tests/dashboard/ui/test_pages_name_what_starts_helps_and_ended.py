"""Process states: pages name starting, helper and ended processes; metrics of instances exclude
starting and helper processes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from html import unescape

import pytest
from compilewatch.wire.messages import Fact, Report, Request
from django.test import Client

from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from tests.dashboard.requests import request_make

pytestmark = pytest.mark.django_db


def no_calls(report: Report) -> None:
    report.regions = []


def ended(**data: object) -> Callable[[Report], None]:
    def change(report: Report) -> None:
        report.facts.append(Fact("ended", report.window[1], dict(data)))

    return change


def text(answer: object) -> str:
    """The text of a page without tags."""
    said = unescape(answer.content.decode())  # type: ignore[attr-defined]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", said))


@pytest.fixture
def model(store_reports: Callable[..., object]) -> WatchedModel:
    end = time.time() - 20.0
    same = {"end": end, "host": "node-1", "job": "server"}
    requests: list[Request] = [
        request_make(instance=1, label="ranker-0", role="worker", **same),  # type: ignore[arg-type]
        request_make(instance=2, pid=4711, change=no_calls, **same),  # type: ignore[arg-type]
        request_make(instance=3, role="data worker", change=no_calls, **same),  # type: ignore[arg-type]
        request_make(instance=4, role="parent", change=no_calls, **same),  # type: ignore[arg-type]
        request_make(instance=5, pid=12, change=ended(signal="SIGTERM"), **same),  # type: ignore[arg-type]
        request_make(instance=6, pid=13, change=ended(code=3), **same),  # type: ignore[arg-type]
    ]
    store_reports(*requests)
    fold_all()
    return WatchedModel.objects.get()


def test_the_list_of_instances_names_these_processes_and_counts_only_instances(
    signed_in: Client, project: Project, model: WatchedModel
) -> None:
    said = text(signed_in.get(f"/p/{project.slug}/models/{model.pk}/instances/"))
    assert "ranker-0" in said
    assert "node-1 / rank 0 / pid 4711" in said and "starting" in said
    assert "ended by SIGTERM" in said and "exit code 3" in said
    assert "1 data worker" in said and "1 parent" in said
    rows = signed_in.get(f"/p/{project.slug}/models/{model.pk}/instances.json").json()
    assert rows["states"].get("starting") == 1 and rows["states"].get("ended") == 2
    assert not any(number.rjust(26, "0") in str(rows["instances"]) for number in "34"), (
        "a helper process is not an instance"
    )


def test_health_and_setup_show_starting_processes(
    signed_in: Client, project: Project, model: WatchedModel
) -> None:
    health = text(signed_in.get(f"/p/{project.slug}/health/"))
    assert "1 starting" in health and "2 ended" in health
    assert "1 data worker" in health and "1 parent" in health
    assert "Receiving reports" in text(signed_in.get(f"/p/{project.slug}/setup/"))


def test_the_page_of_an_instance_shows_how_it_ended(
    signed_in: Client, project: Project, model: WatchedModel
) -> None:
    page = f"/p/{project.slug}/models/{model.pk}/instances/{'5'.rjust(26, '0')}/"
    said = text(signed_in.get(page))
    assert "ended by SIGTERM" in said and "No report for" not in said
