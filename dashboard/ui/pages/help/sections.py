"""Sections of a Markdown document: each heading with its anchor and the text below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ANCHOR_PREFIX = "s-"
"""Precedes every anchor, so that no heading of a document takes an id of the page frame."""

_HEADING = re.compile(r"^(#{1,6}) +(.+?)(?: +#+)? *$")
_FENCE = re.compile(r"^ *(?:```|~~~)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MARKUP = re.compile(r"[`*]")


@dataclass(frozen=True)
class Section:
    """A heading with the text up to the next heading; `line` is the heading's, from 0."""

    line: int
    level: int
    anchor: str
    title: str
    body: str


def split_sections(text: str) -> list[Section]:
    """The sections of a document in their order; text before the first heading is in none."""
    lines = text.splitlines()
    starts = list(_find_headings(lines))
    ends = [line for line, *_ in starts[1:]] + [len(lines)]
    seen: list[str] = []
    sections = []
    for (line, level, title), end in zip(starts, ends, strict=True):
        seen.append(slug := _make_slug(title))
        repeated = seen.count(slug) - 1
        anchor = ANCHOR_PREFIX + (f"{slug}-{repeated}" if repeated else slug)
        body = "\n".join(lines[line + 1 : end])
        sections.append(Section(line, level, anchor, strip_markup(title), body))
    return sections


def strip_markup(text: str) -> str:
    """The words of a line of Markdown."""
    return " ".join(_MARKUP.sub("", _LINK.sub(r"\1", text)).split())


def _find_headings(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    fenced = False
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (found := _HEADING.match(line)):
            yield number, len(found[1]), found[2]


def _make_slug(title: str) -> str:
    """The anchor that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
