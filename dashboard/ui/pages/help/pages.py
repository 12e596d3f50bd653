"""Pages of the help: a document with its contents, and the index by area."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from dashboard.ui.pages.help.documents import Document, load_documents, resolve_link
from dashboard.ui.pages.help.markdown import render_markdown
from dashboard.ui.pages.help.sections import Section

AREAS = {
    "dashboard": "Dashboard",
    "dashboard/judge": "Judge",
    "dashboard/operations": "Operations",
    "agents": "Agent guides",
    "agents/guide": "Agent guides",
    "agents/reference": "Agent reference",
    "agents/design": "Agent design",
    "dashboard/decisions": "Decisions",
}
"""Areas of the folders in the order of the index; an unlisted folder comes last."""
DECISIONS = "dashboard/decisions"
CONTENTS_LEVEL = 2


@dataclass(frozen=True)
class HelpPage:
    """A document as its page shows it."""

    title: str
    title_html: SafeString
    body_html: SafeString
    area: HelpArea
    contents: list[Section]


@dataclass(frozen=True)
class HelpArea:
    """Documents of one area; `anchor` is the place in the index."""

    anchor: str
    title: str
    documents: list[Document]


def build_page(key: str) -> HelpPage | None:
    """The page of a document, rendered once per process; None for an unknown key."""
    return _render_page(key) if key in load_documents() else None


@cache
def _render_page(key: str) -> HelpPage:
    document = load_documents()[key]
    rendered = render_markdown(document.text, document.sections, partial(resolve_link, document))
    return HelpPage(
        title=document.title,
        title_html=mark_safe(rendered.title_html) or escape(document.title),
        body_html=mark_safe(rendered.body_html),
        area=_build_area(name_area(document), []),
        contents=[one for one in document.sections if one.level == CONTENTS_LEVEL],
    )


def build_index() -> list[HelpArea]:
    """The areas with their documents; of the decisions only their own index."""
    found: dict[str, list[Document]] = {title: [] for title in AREAS.values()}
    for document in load_documents().values():
        if document.folder != DECISIONS or document.key == DECISIONS:
            found.setdefault(name_area(document), []).append(document)
    return [
        _build_area(title, sorted(documents, key=_rank))
        for title, documents in found.items()
        if documents
    ]


def name_area(document: Document) -> str:
    """The title of the area that the document belongs to."""
    return AREAS.get(document.folder) or document.folder.rsplit("/", 1)[-1].capitalize()


def _rank(document: Document) -> tuple[bool, bool, str]:
    """Index pages first, then overviews, then by title."""
    return (
        document.key != document.folder,
        not document.key.endswith("/overview"),
        document.title.lower(),
    )


def _build_area(title: str, documents: list[Document]) -> HelpArea:
    return HelpArea("area-" + title.lower().replace(" ", "-"), title, documents)
