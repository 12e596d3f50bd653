"""A scrollable region has another name than the heading of its section: screen readers list both as
landmarks, and axe reports two landmarks with one name."""

from __future__ import annotations

import re

import pytest

from tests.architecture.tree import REPOSITORY, tracked

TEMPLATES = [
    path
    for path in tracked()
    if path.startswith("dashboard/ui/") and "/templates/" in path and path.endswith(".html")
]
HEADING = re.compile(r'<h[1-4][^>]*\bid="[^"]*"[^>]*>(.*?)</h[1-4]>', re.DOTALL)
REGION = re.compile(r'<[^>]*\brole="region"[^>]*\baria-label="([^"]*)"')


def find_shared_names(source: str) -> set[str]:
    """Names that a heading and a region, or two regions, of the template share."""
    headings = {" ".join(text.split()).lower() for text in HEADING.findall(source)}
    regions = [name.strip().lower() for name in REGION.findall(source)]
    return {name for name in regions if name in headings or regions.count(name) > 1}


def test_no_template_names_two_landmarks_alike() -> None:
    assert len(TEMPLATES) > 100
    found = {path: find_shared_names((REPOSITORY / path).read_text()) for path in TEMPLATES}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "shared"),
    [
        ('<h2 id="a">Lost</h2><div role="region" aria-label="Lost"></div>', {"lost"}),
        ('<h2 id="a">\n Lost\n</h2><div tabindex="0" role="region" aria-label="lost">', {"lost"}),
        ('<p role="region" aria-label="A"></p><p role="region" aria-label="A"></p>', {"a"}),
        ('<h2 id="a">Lost</h2><div role="region" aria-label="Table of lost reports">', set()),
    ],
)
def test_the_check_finds_names_that_are_shared(source: str, shared: set[str]) -> None:
    assert find_shared_names(source) == shared
