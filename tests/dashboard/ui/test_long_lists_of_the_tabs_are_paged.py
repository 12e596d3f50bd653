"""Compiles and Startup with one and with many rows: 500 frames, 3,000 compilations, and 2,000
starts are paged, drawn and kept under 300 KB."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from dashboard.fleet.models import ColdStart, CompileEvent, Instance
from dashboard.fleet.selectors.compilations.compilations import MOST_EVENTS
from dashboard.fleet.selectors.instances.cold_starts import MAX_STARTS
from dashboard.projects.models import Project
from tests.dashboard.ui.version_story import Story, part, shown, tab_of

pytestmark = pytest.mark.django_db
MOST_BYTES = 300_000


@pytest.fixture
def story(store_reports: Callable[..., object]) -> Story:
    made = Story(store_reports)
    made.start("1", ago=20)
    made.fold()
    return made


def copy_compilations(count: int) -> None:
    """Adds recompiles of `count` frames."""
    one = CompileEvent.objects.get()
    copies = []
    for number in range(1, count + 1):
        fields = {field.attname: getattr(one, field.attname) for field in one._meta.concrete_fields}
        fields |= {"number": number, "frame": f"frame_{number:04d}", "kind": "recompile"}
        copies.append(CompileEvent(**fields | {"reason": "x.size(0) == 8", "total": number / 100}))
    CompileEvent.objects.bulk_create(copies)


def copy_starts(count: int) -> None:
    """Adds starts of other processes, each 0.1 s longer than the previous one."""
    one, start = Instance.objects.get(), ColdStart.objects.get()
    made = []
    for number in range(count):
        fields = {field.attname: getattr(one, field.attname) for field in one._meta.concrete_fields}
        del fields["id"]
        made.append(Instance(**fields | {"instance_id": f"{number:032x}", "host": f"h-{number}"}))
    ids = [row.pk for row in Instance.objects.bulk_create(made)]
    shape = {field.attname: getattr(start, field.attname) for field in start._meta.concrete_fields}
    ColdStart.objects.bulk_create(
        ColdStart(**shape | {"instance_id": id, "total": 40 + place / 10})
        for place, id in enumerate(ids)
    )


def test_one_compilation_and_one_start_have_no_pager(
    story: Story, signed_in: Client, project: Project
) -> None:
    text = shown(signed_in, project, "1")
    assert "1 first compile<" in part(text, "compilations") and "1 start" in part(text, "start")
    assert "All compilations" in part(text, "longest")
    assert 'rel="next"' not in text and 'id="instance"' not in text


def test_frames_and_compilations_are_paged(
    story: Story, signed_in: Client, project: Project
) -> None:
    copy_compilations(500)
    text = shown(signed_in, project, "1", tabs=["compiles"])
    frames = part(text, "frames")
    assert frames.count('scope="row"') == 6 and "1 to 6 of 501 frames" in frames
    assert "491 other graphs" in part(text, "phases")
    longest = part(text, "longest")
    assert "All 501" in longest and longest.count('scope="row"') == 3
    second = shown(signed_in, project, "1", "?fpage=2&compilations=all&cpage=2", tabs=["compiles"])
    assert "7 to 12 of 501 frames" in part(second, "frames")
    rows = part(second, "longest")
    assert "41 to 80 of 501 compilations" in rows and rows.count('scope="row"') == 40
    ordered = shown(signed_in, project, "1", "?csort=took", tabs=["compiles"])
    assert "frame_0001" in part(ordered, "longest")


def test_more_compilations_than_are_read_are_stated(
    story: Story, signed_in: Client, project: Project
) -> None:
    copy_compilations(MOST_EVENTS)
    answer = signed_in.get(tab_of(project, "1", "compiles", "?compilations=all"))
    text = " ".join(answer.content.decode().split())
    assert "reads only the newest 3,000 compilations" in text
    assert len(answer.content) < MOST_BYTES


def test_two_thousand_starts_are_a_histogram_and_a_paged_list(
    story: Story, signed_in: Client, project: Project
) -> None:
    copy_starts(2000)
    answer = signed_in.get(tab_of(project, "1", "startup", "?spage=2"))
    text = " ".join(answer.content.decode().split())
    assert len(answer.content) < MOST_BYTES
    plot = part(text, "distribution")
    assert "f2 dotf" not in plot and 4 < plot.count("<rect") <= 40
    counts = [int(found) for found in re.findall(r"<title>(\d+)", plot)]
    assert sum(counts) == MAX_STARTS
    card = part(text, "start")
    assert "41 to 80 of 400 starts" in card and "only the newest processes are read" in card
    assert card.count("<option") <= 61


def test_marks_of_sixty_starts_are_drawn_one_by_one(
    story: Story, signed_in: Client, project: Project
) -> None:
    copy_starts(59)
    plot = part(shown(signed_in, project, "1", tabs=["startup"]), "distribution")
    assert plot.count("f2 dotf") == 60
