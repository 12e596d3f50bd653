"""Language lint: finds words that the project's vocabulary replaces."""

from collections.abc import Iterator
from pathlib import Path

from tests.lint.prose import read_prose
from tests.lint.vocabulary import HEADING_RULE, RULES

OUTSIDE: dict[str, str] = {}
"""Files whose words belong to a protocol or another program, each with its reason."""


def find_words(path: Path) -> Iterator[str]:
    """One line for each violation in the file or below the folder: file, line, words,
    replacement."""
    for file in [path] if path.is_file() else sorted(filter(_has_prose, path.rglob("*"))):
        if file.as_posix() not in OUTSIDE:
            yield from check_file(file)


def _has_prose(file: Path) -> bool:
    """Whether the file is Python, Markdown or a template; other text files are data."""
    return file.suffix in {".py", ".md", ".html"} or (
        file.suffix == ".txt" and "templates" in file.parts
    )


def check_file(file: Path) -> Iterator[str]:
    """One line for each violation in the file."""
    for line, words in read_prose(file):
        rules = (*RULES, HEADING_RULE) if file.suffix == ".md" else RULES
        for pattern, instead in rules:
            for found in pattern.finditer(words):
                yield f"{file}:{line}: {found[0]!r}: write {instead}"
