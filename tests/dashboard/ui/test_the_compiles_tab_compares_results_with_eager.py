"""Parity on the Version page: no golden batch, all passed, failed, not compared with the reason,
and half a fleet that does not report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.numerics import Parity, parity_data
from django.test import Client

from dashboard.projects.models import Project
from tests.dashboard.ui.version_story import Story, part, shown, tab_of, url_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def story(store_reports: Callable[..., object]) -> Story:
    return Story(store_reports)


def golden_result(state: Any, name: str = "batch of 16", **fields: Any) -> dict[str, Any]:
    if state != "not compared" and "why" not in fields:
        fields = {
            "where": "output",
            "error": 1e-3,
            "eager_error": 9e-4,
            "tolerance": 2e-3,
            "reference": "float64",
            **fields,
        }
    return parity_data(Parity(name, state, **fields))


def card(client: Client, project: Project, version: str = "2") -> str:
    return part(shown(client, project, version), "parity")


def test_without_a_golden_batch_the_page_states_how_to_declare_one(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("2")
    story.start("2")
    story.fold()
    text = card(signed_in, project)
    assert "No golden batch" in text and "None of 2 processes reported a golden batch" in text
    assert 'compilewatch.golden("name", model, inputs)' in text and "passed on" not in text


def test_a_batch_that_passed_everywhere_is_shown_with_its_error_and_tolerance(
    story: Story, signed_in: Client, project: Project
) -> None:
    for error in (1e-3, 1.5e-3):
        story.start("2", parities=[golden_result("passed", error=error, region="Ranker")])
    story.fold()
    text = card(signed_in, project)
    assert (
        "compared with eager: all passed" in text
        and "passed on 2" in text
        and "<code>Ranker</code>" in text
    )
    assert (
        "output is off by 0.0015, within the tolerance of 0.002 (eager's own error is 0.0009)"
        in text
    )
    assert "failed" not in text and "reported no golden batch" not in text


def test_a_failure_is_shown_with_its_instances_its_start_and_the_result_of_the_baseline(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", ago=100, parities=[golden_result("passed")])
    story.start(
        "2", parities=[golden_result("failed", error=0.2, nonfinite=1200, eager_nonfinite=200)]
    )
    story.start("2", parities=[golden_result("failed", error=0.1)])
    story.start(
        "2", parities=[golden_result("passed", last="differs", last_version="1", last_change=0.021)]
    )
    story.fold()
    text = card(signed_in, project)
    assert "1 golden batch failed" in text and "failed on 2</b>, passed on 1" in text
    assert "output is off by 0.2, 100 times the tolerance of 0.002" in text
    assert "1,200 NaN or infinite values, 200 of them in eager too" in text
    assert (
        "gpu-02 / rank 0" in text
        and "gpu-03 / rank 0" in text
        and "gpu-04" not in text
        and "NVIDIA H200, since" in text
    )
    assert "passed on 1 process of 1" in text
    assert "outputs differ by about 2.1% from 1, with the same weights and inputs" in text


def test_a_failure_that_the_baseline_shows_too_is_marked(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", ago=100, parities=[golden_result("failed", error=0.2)])
    story.start("2", parities=[golden_result("failed", error=0.2)])
    story.fold()
    assert "also failed on 1 process of 1" in card(signed_in, project)


def test_a_batch_that_was_not_compared_states_the_reason_and_makes_no_claim(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start(
        "2",
        parities=[
            golden_result("not compared", why="the eager call ran out of memory"),
            golden_result("failed", "shape", why="another shape"),
        ],
    )
    story.start(
        "2",
        parities=[
            golden_result("not compared", why="the eager call ran out of memory"),
            golden_result("passed", "shape"),
        ],
    )
    story.fold()
    text = card(signed_in, project)
    assert (
        "not compared on 2" in text
        and "the eager call ran out of memory" in text
        and "another shape" in text
    )
    story.start("3", parities=[golden_result("not compared", why="two eager calls differ")])
    story.fold()
    only = card(signed_in, project, "3")
    assert (
        "compared with eager: no batch was compared" in only
        and "passed" not in only
        and "not known" in only
    )


def test_the_number_of_processes_with_an_older_agent_is_shown(
    story: Story, signed_in: Client, project: Project
) -> None:
    for number in range(4):
        story.start("2", parities=[golden_result("passed")] if number % 2 else [])
    story.fold()
    text = card(signed_in, project)
    assert "2 of 4 did not report this batch" in text
    assert (
        "2 of 4 processes reported no golden batch</b>: the agent is older, or the code calls "
        "none" in text
    )


def test_the_json_has_the_same_numbers(story: Story, signed_in: Client, project: Project) -> None:
    story.start("2", parities=[golden_result("failed", error=0.2)])
    story.start("2")
    story.fold()
    found = signed_in.get(url_of(project, "2", ".json")).json()["parity"]
    (batch,) = found.pop("batches")
    assert found == {"processes": 2, "silent": 1}
    assert (
        batch["state"],
        batch["failed"],
        batch["silent"],
        batch["error"],
        batch["tolerance"],
    ) == ("failed", 1, 1, 0.2, 2e-3)


def test_reported_text_stays_text(story: Story, signed_in: Client, project: Project) -> None:
    odd = "<script>alert(1)</script>"
    story.start(
        "2",
        parities=[
            {
                "name": odd,
                "state": "failed",
                "why": odd,
                "region": odd,
                "last": odd,
                "error": "x",
                "outputs": [1],
            }
        ],
    )
    story.fold()
    raw = signed_in.get(tab_of(project, "2", "compiles")).content.decode()
    assert odd not in raw and raw.count("&lt;script&gt;alert(1)") >= 3
