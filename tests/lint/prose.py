"""Prose reader: docstrings, comments and literals with a space of Python, Markdown without code,
and the text, comments and text attributes of templates."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

_CODE_SPAN = re.compile(r"(``?)[^`]+\1")
_FENCE = re.compile(r"^\s*(```|~~~)")
_LINK_TARGET = re.compile(r"\]\([^)]*\)")
_TEMPLATE_COMMENT = re.compile(
    r"\{#(.*?)#\}|\{% *comment\b[^%]*%\}(.*?)\{% *endcomment *%\}", re.DOTALL
)
_TEMPLATE_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_LITERAL_OR_CHARACTER = re.compile(r"\"[^\"]*\"|'[^']*'|.", re.DOTALL)
_TEXT_ATTRIBUTES = {"title", "alt", "aria-label", "placeholder"}
_CODE_ELEMENTS = {"code", "pre", "kbd", "samp", "script", "style"}


class Text(NamedTuple):
    """A piece of prose and the line where it begins."""

    line: int
    words: str


def read_prose(file: Path) -> Iterator[Text]:
    """The prose of a Python or Markdown file or of a template."""
    source = file.read_text()
    if file.suffix == ".md":
        return _read_markdown(source)
    if file.suffix in {".html", ".txt"}:
        return _read_template(source, is_html=file.suffix == ".html")
    return _read_python(source)


def _read_markdown(source: str) -> Iterator[Text]:
    in_code = False
    for number, line in enumerate(source.splitlines(), 1):
        if _FENCE.match(line):
            in_code = not in_code
        elif not in_code:
            yield Text(number, _LINK_TARGET.sub("]", _CODE_SPAN.sub("``", line)))


def _read_python(source: str) -> Iterator[Text]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], _CODE_SPAN.sub("``", token.string))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for offset, line in enumerate(node.value.splitlines()):
                yield Text(node.lineno + offset, _CODE_SPAN.sub("``", line))


def _read_template(source: str, *, is_html: bool) -> Iterator[Text]:
    for comment in _TEMPLATE_COMMENT.finditer(source):
        yield from _by_line(1 + source.count("\n", 0, comment.start()), comment[1] or comment[2])
    source = _TEMPLATE_COMMENT.sub(lambda comment: _blank(comment[0]), source)
    source = _TEMPLATE_TAG.sub(lambda tag: _only_literals(tag[0]), source)
    if is_html:
        reader = _HtmlReader()
        reader.feed(source)
        reader.close()
        yield from reader.texts
    else:
        yield from _by_line(1, source)


def _by_line(first: int, source: str) -> Iterator[Text]:
    for number, line in enumerate(source.splitlines(), first):
        yield Text(number, _CODE_SPAN.sub("``", line))


def _blank(source: str) -> str:
    return re.sub(r"\S", " ", source)


def _only_literals(tag: str) -> str:
    """The tag with only its literals with a space left, without their quotes. A value keeps its
    place as a digit, which the rules for units need."""
    parts = (part[0] for part in _LITERAL_OR_CHARACTER.finditer(tag))
    literals = "".join(f" {part[1:-1]} " if " " in part.strip() else _blank(part) for part in parts)
    return f" {literals[1:-1]}0" if tag.startswith("{{") else literals


class _HtmlReader(HTMLParser):
    """Collects the text, the comments and the text attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[Text] = []
        self._code_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._code_depth += tag in _CODE_ELEMENTS
        line = self.getpos()[0]
        self.texts += [
            Text(line, value) for name, value in attrs if value and name in _TEXT_ATTRIBUTES
        ]

    def handle_endtag(self, tag: str) -> None:
        self._code_depth -= tag in _CODE_ELEMENTS

    def handle_data(self, data: str) -> None:
        if not self._code_depth:
            self.texts += _by_line(self.getpos()[0], data)

    def handle_comment(self, data: str) -> None:
        self.texts += _by_line(self.getpos()[0], data)
