"""Language lint: finds words that the project's vocabulary replaces."""

from collections.abc import Iterator
from pathlib import Path

from tests.lint.prose import read_prose
from tests.lint.vocabulary import HEADING_RULE, RULES

OUTSIDE = {
    "migrations": "applied migrations keep their texts",
    "test_the_language_lint_finds_private_words.py": "examples of the words that the lint finds",
}
"""Names of folders and files whose words cannot change, each with its reason."""
QUOTED = {
    "engine, errors told": "a stored mode of engines without an agent",
    "note, figure, .stats": "a selector of HTML elements",
    "> figure:visible": "a selector of HTML elements",
    "<%= 7*7 %>": "template syntax of another program",
    " 8 % ": "an input with spaces, which the form accepts",
    "max_buffer_size 1MiB": "a directive of Caddy",
    "request_buffers 1MiB": "a directive of Caddy",
}
"""Quotes of stored values and of other programs, each with its reason; the lint ignores them."""


def find_words(path: Path) -> Iterator[str]:
    """One line for each violation in the file or below the folder: file, line, words,
    replacement."""
    for file in [path] if path.is_file() else sorted(filter(_has_prose, path.rglob("*"))):
        if not OUTSIDE.keys() & set(file.parts):
            yield from check_name(file)
            yield from check_file(file)


def check_name(file: Path) -> Iterator[str]:
    """One line for each violation in the name of a file, which is a sentence in tests."""
    words = file.stem.replace("_", " ")
    for pattern, instead in RULES:
        for found in pattern.finditer(words):
            yield f"{file}: {found[0]!r} in the name: write {instead}"


def _has_prose(file: Path) -> bool:
    """Whether the file is Python, Markdown or a template; other text files are data."""
    return file.suffix in {".py", ".md", ".html"} or (
        file.suffix == ".txt" and "templates" in file.parts
    )


def check_file(file: Path) -> Iterator[str]:
    """One line for each violation in the file."""
    for line, words in read_prose(file):
        for quote in QUOTED:
            words = words.replace(quote, "")
        rules = (*RULES, HEADING_RULE) if file.suffix == ".md" else RULES
        for pattern, instead in rules:
            for found in pattern.finditer(words):
                yield f"{file}:{line}: {found[0]!r}: write {instead}"
