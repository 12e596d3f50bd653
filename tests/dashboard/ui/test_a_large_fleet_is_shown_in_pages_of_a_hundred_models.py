"""Pages of the Fleet table: each model is on exactly one of them."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.projects.models import Project
from tests.dashboard.ui.fleet_page import create_models, list_links, list_names, read_page

pytestmark = pytest.mark.django_db


@pytest.fixture
def names(project: Project) -> list[str]:
    return [one.name for one in create_models(project, [f"m-{n:03d}" for n in range(205)])]


def test_three_pages_have_all_models_once(signed_in: Client, names: list[str]) -> None:
    pages = [list_names(signed_in, f"?sort=model&page={page}") for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [100, 100, 5]
    assert [name for page in pages for name in page] == names


def test_a_page_states_its_place_and_links_to_the_next_one(
    signed_in: Client, names: list[str]
) -> None:
    html = read_page(signed_in, "?sort=model&page=2")
    assert "101 to 200 of 205 models" in " ".join(html.split())
    assert {"sort": ["model"], "page": ["3"]} in list_links(html, "Next")


@pytest.mark.parametrize("page", ["0", "-1", "99", "x", "9" * 400])
def test_a_page_that_does_not_exist_is_the_nearest_one(
    signed_in: Client, names: list[str], page: str
) -> None:
    assert list_names(signed_in, f"?page={page}")


def test_a_group_continues_on_the_next_page(signed_in: Client, names: list[str]) -> None:
    html = read_page(signed_in, "?group=environment&page=2")
    assert html.count('class="grpx"') == 1 and "205 models" in html.split('class="grpx"')[1]
