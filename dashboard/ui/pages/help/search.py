"""Search of the help: sections that contain all words, from memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from dashboard.ui.pages.help.documents import Document, load_documents
from dashboard.ui.pages.help.pages import DECISIONS, name_area
from dashboard.ui.pages.help.sections import Section

MIN_HEADING_WORD_LENGTH = 2
MIN_BODY_WORD_LENGTH = 3
"""Shorter words, such as the number of a version, are in almost every text."""


@dataclass(frozen=True)
class HelpResult:
    """A section that contains all words; without an anchor it is the document;
    `origin` names the document of a section and the area of a document."""

    key: str
    anchor: str
    title: str
    origin: str


@dataclass(frozen=True)
class _Entry:
    """A searched text: heading, title with heading, and title with heading and body."""

    document: Document
    section: Section
    heading: str
    path: str
    text: str


def search_help(words: Sequence[str], limit: int) -> tuple[list[HelpResult], bool]:
    """Results in the order of their rank, and whether there are more."""
    lowered = [word.lower() for word in words]
    if not lowered or min(map(len, lowered)) < MIN_HEADING_WORD_LENGTH:
        return [], False
    ranked = sorted(_find(lowered), key=lambda found: found[0])
    results = [_describe(entry) for _, entry in ranked]
    return results[:limit], len(results) > limit


def _find(words: list[str]) -> Iterator[tuple[tuple[bool, int], _Entry]]:
    """Matches in headings; of a document without one, the first match in its text."""
    in_body = min(map(len, words)) >= MIN_BODY_WORD_LENGTH
    named: set[str] = set()
    bodies: dict[str, _Entry] = {}
    for entry in _index():
        key = entry.document.key
        late = key.startswith(DECISIONS)
        if _contains(entry.heading, words):
            named.add(key)
            yield (late, 0), entry
        elif entry.section.level > 1 and _adds(entry, words):
            named.add(key)
            yield (late, 1), entry
        elif in_body and _contains(entry.text, words):
            bodies.setdefault(key, entry)
    for key, entry in bodies.items():
        if key not in named:
            yield (key.startswith(DECISIONS), 2), entry


def _contains(text: str, words: list[str]) -> bool:
    return all(word in text for word in words)


def _adds(entry: _Entry, words: list[str]) -> bool:
    """True if the title of the document and the heading contain the words together only."""
    return _contains(entry.path, words) and not _contains(entry.document.title.lower(), words)


@cache
def _index() -> tuple[_Entry, ...]:
    return tuple(
        _Entry(
            document,
            section,
            section.title.lower(),
            f"{document.title} {section.title}".lower(),
            f"{document.title} {section.title} {body}".lower(),
        )
        for document in load_documents().values()
        for section, body in _list_texts(document)
    )


def _list_texts(document: Document) -> list[tuple[Section, str]]:
    """The sections with their texts. A decision is short and has the headings of every other one:
    it is one text."""
    if document.folder == DECISIONS:
        return [(section, document.text) for section in document.sections[:1]]
    return [(section, section.body) for section in document.sections]


def _describe(entry: _Entry) -> HelpResult:
    document, section = entry.document, entry.section
    whole = section.level == 1
    return HelpResult(
        key=document.key,
        anchor="" if whole else section.anchor,
        title=section.title,
        origin=name_area(document) if whole else document.title,
    )
