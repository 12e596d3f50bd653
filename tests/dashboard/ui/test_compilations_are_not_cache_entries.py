"""Headroom compares live cache entries with the limit in effect; the total number of compilations
is not the number of cache entries, and no limit is assumed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from compilewatch.wire.messages import Compile, Finding
from django.test import Client

from dashboard.fleet.models import Finding as StoredFinding
from dashboard.projects.models import Project
from dashboard.ui.pages.compiles.recompile_headroom import CacheEntries, find_fullest
from tests.dashboard.ui.version_story import HIT, Story, compiled, part, shown, url_of

pytestmark = pytest.mark.django_db
GUARD = Finding(
    "guard",
    "tensor 'x' size mismatch at index 0. expected *, actual *",
    "ranker/score.py:118 in score_batch",
)


def again(
    entries: int | None,
    limit: int | None = 8,
    *,
    kind: str = "recompile",
    frame: str = "score_batch",
) -> Compile:
    return compiled(
        0, 1.0, HIT, kind=kind, entries=entries, limit=limit, frame=frame, reason="x.size(0) == 8"
    )


@pytest.fixture
def story(store_reports: Callable[..., object]) -> Story:
    return Story(store_reports)


def room(story: Story, client: Client, project: Project, *events: Compile) -> str:
    story.start("1", ago=20, timed=[*events], findings=[GUARD])
    story.fold()
    return part(shown(client, project, "1"), "frames")


def test_thirty_compilations_with_resets_are_one_entry_of_eight(
    story: Story, signed_in: Client, project: Project
) -> None:
    card = room(story, signed_in, project, *(again(1) for _ in range(30)))
    assert "<b>1 of 8 cache entries</b>, 7 left" in card and "30 of" not in card
    head = shown(signed_in, project, "1").split("<dt>Recompile limit")[1][:40]
    assert "1 of 8" in head
    entries = signed_in.get(url_of(project, "1", ".json")).json()["headroom"]
    assert [(row["entries"], row["limit"]) for row in entries] == [(1, 8)]


def test_the_latest_compilation_of_an_instance_counts_and_the_fullest_instance_is_shown(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", ago=20, timed=[again(1), again(2), again(7, 64)])
    story.start("1", ago=10, timed=[again(7, 64), again(60, 64)])
    card = room(story, signed_in, project, again(8, 64), again(1, 64))
    assert "<b>60 of 64 cache entries</b>, 4 left" in card
    assert 'class="pips"' not in card, "64 marks are too many"


def test_recordings_and_backward_passes_add_no_entry(
    story: Story, signed_in: Client, project: Project
) -> None:
    card = room(
        story,
        signed_in,
        project,
        again(3),
        again(None, None, kind="cuda_graph"),
        again(None, None, kind="backward"),
    )
    assert "<b>3 of 8 cache entries</b>, 5 left" in card


def test_an_agent_that_reports_no_entries_has_no_number(
    story: Story, signed_in: Client, project: Project
) -> None:
    card = room(story, signed_in, project, *(again(None, None) for _ in range(12)))
    assert (
        "not reported by this agent" in card
        and " of 8" not in card
        and "left" not in card.split("<tbody>")[1]
    )
    assert (
        "no limit is reported"
        in shown(signed_in, project, "1").split("<dt>Recompile limit")[1][:200]
    )
    story.start("1", ago=10, timed=[again(2)])
    story.fold()
    card = part(shown(signed_in, project, "1"), "frames")
    assert (
        "<b>2 of 8 cache entries</b>, 6 left" in card and "not reported on 1 of 2 instances" in card
    )


def test_code_without_a_limit_shows_no_limit(
    story: Story, signed_in: Client, project: Project
) -> None:
    card = room(
        story, signed_in, project, *(again(number, None, frame="jitted") for number in range(1, 31))
    )
    assert (
        "<b>30 cache entries</b>" in card
        and "left" not in card.split("<tbody>")[1]
        and "limit reached" not in card
    )
    assert '"limit": null' in signed_in.get(url_of(project, "1", ".json")).content.decode()


def test_only_the_agent_reports_that_a_limit_was_reached(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", ago=20, timed=[again(8)])
    card = room(story, signed_in, project, again(2))
    assert "<b>8 of 8 cache entries</b>, 0 left" in card and "limit reached" not in card
    assert CacheEntries(361, 361).left == 0 and find_fullest(
        [CacheEntries(), CacheEntries(9), CacheEntries(1, 8)]
    ) == CacheEntries(1, 8)


def test_the_page_of_a_guard_shows_the_same_headroom(
    story: Story, signed_in: Client, project: Project
) -> None:
    room(story, signed_in, project, *(again(1) for _ in range(30)))
    one = StoredFinding.objects.get(kind="guard")
    address = f"/p/{project.slug}/findings/{one.pk}"
    text = " ".join(signed_in.get(f"{address}/").content.decode().replace("\u00a0", " ").split())
    assert (
        "1 of 8 cache entries used on the fullest of 1 instance" in text
        and "7 more recompilations until" in text
    )
    way = signed_in.get(f"{address}.json").json()["way_out"]["headroom"]
    assert way == {"entries": {"count": 1, "limit": 8}, "instances": 1}


def test_a_limit_that_is_not_in_effect_is_a_finding_of_the_version(
    story: Story, signed_in: Client, project: Project
) -> None:
    text = "recompile_limit 64 is set in another thread; 8 is in force here"
    story.start("1", ago=20, findings=[Finding("limit_not_in_force", text, "serve.py:9")])
    story.fold()
    findings = shown(signed_in, project, "1", tabs=["findings"])
    assert "Limit not in force" in findings and text in findings
