"""Help pages: the index lists all documents by area, and each document has a page with its
title."""

import re
from html import unescape

import pytest
from django.test import Client
from django.utils.html import strip_tags

from dashboard.ui.pages.help.documents import REPOSITORY, load_documents
from dashboard.ui.pages.help.pages import DECISIONS, build_page
from tests.architecture.tree import tracked

DOCUMENTS = [
    path
    for path in tracked()
    if path.endswith(".md")
    and (path.startswith(("dashboard/docs/", "agents/docs/")) or path == "agents/README.md")
]


def test_the_registry_has_every_document_of_the_repository() -> None:
    sources = {document.source for document in load_documents().values()}
    assert len(sources) == len(load_documents()) > 100
    assert sorted(sources) == sorted(DOCUMENTS)


def test_every_document_has_a_page_with_its_title(signed_in: Client) -> None:
    for key, document in load_documents().items():
        answer = signed_in.get(f"/help/{key}/")
        assert answer.status_code == 200, key
        html = answer.content.decode()
        first = (REPOSITORY / document.source).read_text().splitlines()[0]
        title = first.removeprefix("# ").replace("`", "")
        heading = html.split("<h1>", 1)[1].split("</h1>", 1)[0]
        assert html.count("<h1>") == 1
        assert unescape(strip_tags(heading)) == title
        assert unescape(html.split("<title>", 1)[1]).startswith(f"{title} - ")


def test_the_index_links_to_every_document_and_to_the_glossary(signed_in: Client) -> None:
    html = signed_in.get("/help/").content.decode()
    keys = [key for key in load_documents() if not key.startswith(f"{DECISIONS}/")]
    assert [key for key in keys if f'href="/help/{key}/"' not in html] == []
    assert 'href="/numbers/"' in html


def test_the_index_has_one_place_for_each_area(signed_in: Client) -> None:
    html = signed_in.get("/help/").content.decode()
    places = re.findall(r'<h2 id="(area-[^"]+)"', html)
    assert len(places) == len(set(places)) > 5
    areas = {page.area.anchor for key in load_documents() if (page := build_page(key))}
    assert areas <= set(places)


def test_the_index_of_decisions_links_to_every_decision(signed_in: Client) -> None:
    html = signed_in.get(f"/help/{DECISIONS}/").content.decode()
    decisions = [key for key in load_documents() if key.startswith(f"{DECISIONS}/")]
    names = [key.rsplit("/", 1)[-1] for key in decisions]
    assert len(names) > 100
    assert [name for name in names if f'href="{name}/"' not in html] == []


@pytest.mark.parametrize("address", ["/", "/numbers/"])
def test_every_page_links_to_the_help(signed_in: Client, address: str) -> None:
    html = signed_in.get(address, follow=True).content.decode()
    assert html.count('<a href="/help/">Help</a>') == 2, "in the menu of the account and below"


def test_a_document_is_rendered_once_per_process() -> None:
    assert build_page("dashboard/api") is build_page("dashboard/api")
