"""Prose reader: docstrings, comments and literals with a space of Python, and Markdown without
code."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CODE_SPAN = re.compile(r"(``?)[^`]+\1")
_FENCE = re.compile(r"^\s*(```|~~~)")
_LINK_TARGET = re.compile(r"\]\([^)]*\)")


class Text(NamedTuple):
    """A piece of prose and the line where it begins."""

    line: int
    words: str


def read_prose(file: Path) -> Iterator[Text]:
    """The prose of a Python or Markdown file."""
    if file.suffix == ".md":
        return _read_markdown(file.read_text())
    return _read_python(file.read_text())


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
