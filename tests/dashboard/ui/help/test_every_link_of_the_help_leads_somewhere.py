"""Links of help pages: each link leads to a page that answers and to a heading on that page."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import urljoin

import pytest
from django.template.loader import get_template
from django.test import Client

from dashboard.ui.pages.help.documents import load_documents
from dashboard.ui.pages.help.pages import build_page

HREF = re.compile(r'<a href="([^"]*)"')
ID = re.compile(r'\bid="([^"]*)"')
IN_TEMPLATE = re.compile(r"""\{% url 'help_document' '([^']+)' %\}(?:#([\w-]+))?""")


@cache
def html_of(key: str) -> str:
    page = build_page(key)
    assert page is not None, key
    return page.body_html


def is_broken(link: str) -> bool:
    """True if the address is not a document or its heading does not exist."""
    path, _, anchor = link.partition("#")
    key = path.removeprefix("/help/").removesuffix("/")
    return key not in load_documents() or (anchor not in ("", *ID.findall(html_of(key))))


def test_every_link_between_documents_leads_to_a_document_and_a_heading() -> None:
    broken, followed = [], 0
    for key in load_documents():
        for href in HREF.findall(html_of(key)):
            if href.startswith("https://"):
                continue
            link = urljoin(f"/help/{key}/", href)
            followed += 1
            if is_broken(link):
                broken.append(f"{key}: {href}")
    assert broken == []
    assert followed > 250


def test_contents_link_to_headings_of_the_page(signed_in: Client) -> None:
    html = signed_in.get("/help/dashboard/pages/").content.decode()
    contents = html.split('aria-labelledby="contents"', 1)[1].split("</nav>", 1)[0]
    anchors = [href.removeprefix("#") for href in HREF.findall(contents)]
    assert anchors[:2] == ["s-fleet", "s-tabs-of-a-model"]
    assert anchors[-2:] == ["s-detection-settings", "s-kill-switch"]
    assert set(anchors) <= set(ID.findall(html_of("dashboard/pages")))


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("ui/settings/detection/page.html", "dashboard/judge/overview"),
        ("ui/health/page.html", "dashboard/operations/troubleshooting"),
        ("ui/setup/page.html", "agents"),
        ("ui/alerts/list.html", "dashboard/pages"),
        ("ui/compiles/not_observable.html", "agents/reference/limits"),
        ("api/reference.html", "dashboard/api"),
    ],
)
def test_a_page_links_to_its_documents(template: str, key: str) -> None:
    links = IN_TEMPLATE.findall(Path(get_template(template).origin.name).read_text())
    assert key in [document for document, _ in links]
    assert [link for link in links if is_broken("#".join(filter(None, link)))] == []


def test_a_wrong_anchor_and_an_unknown_document_are_found() -> None:
    assert is_broken("/help/dashboard/pages/#s-nowhere")
    assert is_broken("/help/dashboard/nowhere/")
    assert not is_broken("/help/dashboard/pages/#s-alerts")
