"""Renderer of Markdown documents to HTML that the content security policy allows.

Raw HTML of a document stays text, images are their alternative text, and links outside the
documents are plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from dashboard.ui.pages.help.documents import EXTERNAL
from dashboard.ui.pages.help.sections import Section

LinkResolver = Callable[[str], str | None]
RIGHT_ALIGNED = "text-align:right"


@dataclass(frozen=True)
class RenderedText:
    """A document as HTML: its first heading and the content below it."""

    title_html: str
    body_html: str


def render_markdown(
    text: str, sections: Sequence[Section], resolve_link: LinkResolver
) -> RenderedText:
    """The HTML of a document whose headings are `sections`."""
    tokens = _PARSER.parse(text)
    for children in (token.children for token in tokens if token.children):
        children[:] = _rewrite_links(children, resolve_link)
    _name_parts(tokens, {section.line: section for section in sections})
    title: list[Token] = []
    if tokens and tokens[0].tag == "h1":
        title, tokens = tokens[1:2], tokens[3:]
    return RenderedText(_render(title), _render(tokens))


def _render(tokens: Sequence[Token]) -> str:
    return str(_PARSER.renderer.render(tokens, _PARSER.options, {}))


def _rewrite_links(children: list[Token], resolve_link: LinkResolver) -> Iterator[Token]:
    """The tokens of a line with each link resolved; of others only the words remain."""
    plain = False
    for token in children:
        if token.type == "link_open":
            href = resolve_link(str(token.attrs["href"]))
            plain = href is None
            token.attrs = {"href": href or ""}
            if href and href.startswith(EXTERNAL):
                token.attrs["rel"] = "noopener noreferrer"
        if not (plain and token.type in ("link_open", "link_close")):
            yield token


def _name_parts(tokens: Sequence[Token], sections: dict[int, Section]) -> None:
    """Gives headings their anchors; tables and code a label after their section and place."""
    section, repeats, number = "Start", Counter[str](), 0
    for place, token in enumerate(tokens):
        if token.type == "heading_open" and token.map and (found := sections.get(token.map[0])):
            token.attrs = {"id": found.anchor}
            section = found.title
        elif token.type in ("table_open", "fence", "code_block"):
            label = f"{'Table' if token.type == 'table_open' else 'Code'}: {section}"
            repeats[label] += 1
            token.meta["label"] = f"{label}, {repeats[label]}" if repeats[label] > 1 else label
            number += 1
            token.meta["id"] = f"code-{number}"
        elif token.type in ("th_open", "td_open"):
            _dress_cell(tokens, place)


def _dress_cell(tokens: Sequence[Token], place: int) -> None:
    """Replaces the style attribute, which the policy forbids; an empty head is a plain cell."""
    cell, content, end = tokens[place : place + 3]
    if cell.attrs.pop("style", "") == RIGHT_ALIGNED:
        cell.attrs["class"] = "r"
    if cell.type == "th_open" and content.content:
        cell.attrs["scope"] = "col"
    elif cell.type == "th_open":
        cell.tag = end.tag = "td"


def _open_table(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    label = escapeHtml(tokens[place].meta["label"])
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table>\n'


def _close_table(*_: Any) -> str:
    return "</table></div>\n"


def _draw_code(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    token = tokens[place]
    label, anchor = escapeHtml(token.meta["label"]), escapeHtml(token.meta["id"])
    return (
        f'<div class="code"><pre tabindex="0" role="group" aria-label="{label}" id="{anchor}">'
        f"{escapeHtml(token.content)}</pre>"
        f'<button class="btn sm" type="button" data-copy="{anchor}" aria-describedby="{anchor}">'
        "<span data-label>Copy</span></button></div>\n"
    )


def _draw_image(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    return escapeHtml(tokens[place].content)


def _build_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    parser.add_render_rule("fence", _draw_code)
    parser.add_render_rule("code_block", _draw_code)
    parser.add_render_rule("image", _draw_image)
    return parser


_PARSER = _build_parser()
