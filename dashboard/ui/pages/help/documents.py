"""Registry of the documents that the help pages serve.

The registry is the only way to a document: an address is looked up in it and never becomes a path
of a file."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

from dashboard.ui.pages.help.sections import ANCHOR_PREFIX, Section, split_sections

REPOSITORY = Path(__file__).resolve().parents[4]
FOLDERS = ("dashboard/docs", "agents/docs")
SINGLE_FILES = ("agents/README.md",)
EXTERNAL = ("https://", "http://")


@dataclass(frozen=True)
class Document:
    """A document: `key` is its part of the address, `source` its path in the repository."""

    key: str
    source: str
    text: str

    @cached_property
    def sections(self) -> list[Section]:
        """The headings with their texts."""
        return split_sections(self.text)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """The anchors of the headings."""
        return frozenset(section.anchor for section in self.sections)

    @property
    def title(self) -> str:
        """The first heading."""
        return self.sections[0].title if self.sections else self.key

    @property
    def folder(self) -> str:
        """The folder that the document belongs to, in the form of a key."""
        is_index = posixpath.basename(self.source) == "README.md"
        return self.key if is_index else posixpath.dirname(self.key)


@cache
def load_documents() -> Mapping[str, Document]:
    """Every document by its key, read once per process."""
    found = {}
    for source in _list_sources():
        document = Document(_make_key(source), source, (REPOSITORY / source).read_text("utf-8"))
        found[document.key] = document
    return MappingProxyType(found)


def resolve_link(document: Document, href: str) -> str | None:
    """The target of a link as the help pages have it, or None if it is outside the documents.

    Links between documents are relative, so they work under any prefix of the addresses."""
    if href.startswith(EXTERNAL):
        return href
    path, _, fragment = unquote(href).partition("#")
    anchor = ANCHOR_PREFIX + fragment
    if not path:
        return f"#{anchor}" if anchor in document.anchors else None
    source = posixpath.normpath(posixpath.join(posixpath.dirname(document.source), path))
    target = _index_by_source().get(source)
    if target is None:
        return None
    address = posixpath.relpath(target.key, document.key) + "/"
    return f"{address}#{anchor}" if anchor in target.anchors else address


@cache
def _index_by_source() -> Mapping[str, Document]:
    return {document.source: document for document in load_documents().values()}


def _list_sources() -> list[str]:
    """Paths in the repository. An installation without the agent's documents serves the others."""
    files = [REPOSITORY / name for name in SINGLE_FILES]
    for folder in FOLDERS:
        files += sorted((REPOSITORY / folder).rglob("*.md"))
    return [
        file.relative_to(REPOSITORY).as_posix()
        for file in files
        if file.is_file() and not file.is_symlink()
    ]


def _make_key(source: str) -> str:
    """dashboard/docs/judge/overview.md has the key dashboard/judge/overview, and a README that of
    its folder."""
    return source.removesuffix(".md").removesuffix("/README").replace("/docs", "", 1)
