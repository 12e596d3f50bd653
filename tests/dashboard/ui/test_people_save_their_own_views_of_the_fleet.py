"""Saved views of the Fleet page: named addresses, for one person in one project."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from dashboard.projects.fleet_views import MAX_VIEWS
from dashboard.projects.models import Member, Project, Role
from tests.dashboard.ui.fleet_page import create_models, read_page

pytestmark = pytest.mark.django_db
QUERY = "q=gpu%3AH200&group=gpu&sort=-p50"


@pytest.fixture
def viewer(as_role: Callable[[Role], Client], project: Project) -> Client:
    create_models(project, ["ranker"])
    return as_role(Role.VIEWER)


def save(client: Client, name: str, query: str = QUERY) -> str:
    answer = client.post("/p/ranking/views/save/", {"name": name, "query": query}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def list_views() -> list[str]:
    return [one["name"] for member in Member.objects.all() for one in member.fleet_views]


def test_a_viewer_saves_the_address_and_opens_it_again(viewer: Client) -> None:
    save(viewer, "H200 by p50", f"?{QUERY}&page=3&open=1&other=2")
    assert f'href="/p/ranking/?{QUERY}"' in read_page(viewer)
    opened = read_page(viewer, f"?{QUERY}")
    tab = opened.split(f'href="/p/ranking/?{QUERY}"')[1].split(">")[0]
    assert 'aria-current="page"' in tab and "Delete this view" in opened


def test_a_view_is_only_for_its_person(
    viewer: Client, as_role: Callable[[Role], Client], project: Project
) -> None:
    save(viewer, "mine")
    assert "<bdi>mine</bdi>" not in read_page(as_role(Role.ADMIN))


def test_the_same_name_replaces_the_view(viewer: Client) -> None:
    save(viewer, "mine")
    save(viewer, "mine", "sort=model")
    assert [one["query"] for one in Member.objects.get().fleet_views] == ["sort=model"]


def test_a_deleted_view_is_gone(viewer: Client) -> None:
    save(viewer, "mine")
    save(viewer, "other", "sort=model")
    viewer.post("/p/ranking/views/delete/", {"name": "mine"})
    assert list_views() == ["other"]


def test_a_person_has_at_most_twenty_views(viewer: Client) -> None:
    for number in range(MAX_VIEWS):
        save(viewer, f"view {number}")
    assert "at most 20 views. Delete one first." in save(viewer, "one more")
    assert len(list_views()) == MAX_VIEWS == 20
    save(viewer, "view 0", "sort=model")
    assert len(list_views()) == MAX_VIEWS


@pytest.mark.parametrize("name", ["", "  ", "x" * 41, "a\u202eb"])
def test_a_name_that_cannot_be_shown_is_refused(viewer: Client, name: str) -> None:
    assert "expected 1 to 40 characters" in save(viewer, name)
    assert list_views() == []


def test_markup_in_a_name_stays_text(viewer: Client) -> None:
    save(viewer, "<script>alert(1)</script>")
    html = viewer.get("/p/ranking/").content.decode()
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>" in html
