"""The most expensive cause of cache misses in the fleet: the sum over all models and waiting GPUs
of the last days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from dashboard.common import clock
from dashboard.projects.models import Project
from tests.dashboard.ui.version_story import HIT, MISS, Story

pytestmark = pytest.mark.django_db
PAGE = "/p/ranking/findings/"
OPTION, FOLDER = "inductor_config: max_autotune", "cache folder is new or was emptied"


@pytest.fixture
def story(store_reports: Callable[..., object]) -> Story:
    return Story(store_reports)


def card(client: Client, query: str) -> str:
    text = " ".join(client.get(PAGE + query).content.decode().replace("\u00a0", " ").split())
    return text.partition('aria-labelledby="costs"')[2].partition("</section>")[0]


def test_the_most_expensive_cause_comes_first_with_its_models(
    story: Story, signed_in: Client, project: Project
) -> None:
    for model, cause, seconds in (
        ("ranker", OPTION, 30.0),
        ("chat", OPTION, 45.0),
        ("chat", FOLDER, 25.0),
        ("embed", "", 90.0),
    ):
        told = {"miss": cause} if cause else {}
        story.start(
            "1", compiling=seconds, cache=MISS if cause else HIT, identity={"model": model}, **told
        )
    story.fold()
    text = card(signed_in, "?kind=cache_miss")
    assert "75% of the missed seconds: 1 min 15 s, 75 GPU-s; in <bdi>chat, ranker</bdi>" in text
    assert "25% of the missed seconds: 25 s, 25 GPU-s; in <bdi>chat</bdi>" in text
    assert text.index(OPTION) < text.index(FOLDER) and "embed" not in text


def test_misses_older_than_a_week_are_left_out(
    story: Story, signed_in: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.start("1", cache=MISS, miss=OPTION)
    story.fold()
    now = clock.now()
    for days, shown in ((6, True), (8, False)):
        monkeypatch.setattr(clock, "now", lambda later=now + timedelta(days=days): later)
        assert (OPTION in card(signed_in, "?kind=cache_miss")) is shown


def test_there_is_no_sum_without_a_miss_or_for_other_kinds(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", cache=HIT)
    story.fold()
    assert card(signed_in, "?kind=cache_miss") == ""
    story.start("2", cache=MISS, miss=OPTION)
    story.fold()
    assert card(signed_in, "?kind=guard") == "" and OPTION in card(signed_in, "?kind=cache_miss")
