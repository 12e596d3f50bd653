"""Guides of the agent: the text of its README and of the pages in agents/docs."""

from __future__ import annotations

from tests.agent.pythons import AGENT

DOCS = AGENT / "docs"
PAGES = (AGENT / "README.md", *sorted(DOCS.rglob("*.md")))


def read_guides() -> str:
    """All pages in one text."""
    return "\n".join(page.read_text() for page in PAGES)


def read_section(page: str, heading: str) -> str:
    """The text under a heading of the second level, up to the next such heading; the page is a path
    below agents/."""
    return (AGENT / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
