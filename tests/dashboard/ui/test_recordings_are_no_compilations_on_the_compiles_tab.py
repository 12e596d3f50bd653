"""Recorded CUDA graphs have their own fact on the Compiles tab, with count and time, and are excluded
from counts of compilations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.test import Client

from dashboard.common import clock
from dashboard.projects.models import Project
from tests.dashboard.ui.version_story import HIT, Story, compiled, part, shown, url_of


@pytest.fixture
def story(store_reports: Callable[..., object]) -> Story:
    return Story(store_reports)


def send_recordings(story: Story, recordings: int) -> None:
    at = clock.unix() // 60 * 60 - 3600 - 60.0
    graph = replace(
        compiled(at, 0.1, {}, frame="score_batch"),
        kind="cuda_graph",
        seconds={"total": 0.1, "cuda_graphs": 0.1},
    )
    story.start("1", compiles=[compiled(at, 4.0, HIT), *([graph] * recordings)])
    story.fold()


def test_recordings_are_counted_in_their_own_row(
    story: Story, signed_in: Client, project: Project
) -> None:
    send_recordings(story, 70)
    text = shown(signed_in, project, "1")
    assert "<dt>CUDA graph recordings</dt><dd>70, 7 s" in part(text, "served")
    bars = part(text, "compilations")
    assert "1 first compile<" in bars and "cuda_graph" not in text
    assert "Spent recording CUDA graphs" in part(shown(signed_in, project, "1"), "pay")
    answer = signed_in.get(url_of(project, "1", ".json")).json()
    assert (answer["compilations"]["known"], answer["cuda_graph_recordings"]["count"]) == (1, 70)


def test_a_version_without_recordings_has_no_such_row(
    story: Story, signed_in: Client, project: Project
) -> None:
    send_recordings(story, 0)
    text = shown(signed_in, project, "1")
    recordings = text.split("<dt>CUDA graph recordings</dt>")[1].split("</div>")[0]
    assert ">none<" in recordings and "recording CUDA graphs" not in text
