"""Every relative link in Markdown names a file of the repository, and every anchor a heading of its
page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.tree import REPOSITORY, tracked

PAGES = [path for path in tracked() if path.endswith(".md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
OUTSIDE = ("https://", "http://", "mailto:")


def prose(page: Path) -> str:
    """The page without fenced code."""
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchor of each heading, in the form of code hosts."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.append(f"{anchor}-{repeated}" if (repeated := found.count(anchor)) else anchor)
    return frozenset(found)


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(prose(page)):
        if link.startswith(OUTSIDE):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{link}: no such file"
        elif anchor and anchor not in anchors(target):
            yield f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_leads_somewhere(page: str) -> None:
    assert list(broken_links(REPOSITORY / page)) == []


def test_the_quick_start_of_the_agent_is_short_and_names_every_page() -> None:
    quick_start = REPOSITORY / "agents/README.md"
    text = quick_start.read_text()
    assert len(text.splitlines()) <= 60
    pages = [
        page.relative_to(quick_start.parent).as_posix()
        for page in (quick_start.parent / "docs").rglob("*.md")
    ]
    assert [page for page in pages if f"]({page})" not in text] == []


def test_the_readme_of_the_repository_is_short() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= 150


def test_the_index_of_the_dashboard_names_every_page() -> None:
    index = REPOSITORY / "dashboard/docs/README.md"
    pages = {
        path.removeprefix("dashboard/docs/") for path in PAGES if path.startswith("dashboard/docs/")
    }
    parts = {
        page for page in pages if page.startswith("decisions/") and page != "decisions/README.md"
    }
    text = index.read_text()
    assert [
        page for page in sorted(pages - parts - {"README.md"}) if f"]({page})" not in text
    ] == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.startswith(("agents/docs/", "dashboard/docs/"))]
)
def test_every_page_of_the_documentation_is_short(page: str) -> None:
    text = (REPOSITORY / page).read_text()
    assert len(text.splitlines()) <= 400
    assert len(text) <= 14_000 or page == "dashboard/docs/decisions/README.md", (
        "the index has one line for each decision"
    )


def test_a_missing_file_and_a_missing_heading_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n\n[a](#one) [b](#two) [c](page.md#one) [d](gone.md) [e](https://example.com/gone)\n"
    )
    assert list(broken_links(page)) == ["#two: no such heading", "gone.md: no such file"]
