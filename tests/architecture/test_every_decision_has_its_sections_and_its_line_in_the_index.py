"""Decision records: numbered without gaps, in one form, short, each listed once in the index, and
about existing files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import REPOSITORY, tracked

FOLDER = "dashboard/docs/decisions/"
INDEX = REPOSITORY / FOLDER / "README.md"
DECISIONS = [
    path for path in tracked() if path.startswith(FOLDER) and not path.endswith("README.md")
]
SECTIONS = ["Context", "Decision", "Consequences", "Measurement"]
STAGES = [
    "Agent and wire",
    "Projects and accounts",
    "Ingest",
    "Fleet",
    "Regressions",
    "Alerts",
    "API",
    "UI",
    "Operations",
    "Tests",
]
FULL_PATH = re.compile(r"`((?:agents|dashboard|docker|tests)/[\w./-]+)`")


def missing_sections(text: str) -> Iterator[str]:
    """The parts of the form that the text lacks."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    if parts[1::2] != SECTIONS:
        yield f"the sections are {parts[1::2]}"
    yield from (
        f"{title} is empty"
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
        if not body.strip()
    )
    head = re.match(r"# (.+)\n\nStatus: accepted \((.+)\)\n", parts[0])
    if head is None:
        yield "the title or the status is missing"
    elif len(head[1].split()) > 8 or head[2] not in STAGES:
        yield f"the title has over eight words, or the stage is unknown: {head[0]}"


def test_numbers_have_four_digits_and_no_gap() -> None:
    names = [Path(path).name for path in DECISIONS]
    assert [name for name in names if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name)] == []
    assert sorted(int(name[:4]) for name in names) == list(range(1, len(names) + 1))


@pytest.mark.parametrize("path", DECISIONS)
def test_a_decision_has_the_four_sections_and_is_short(path: str) -> None:
    text = (REPOSITORY / path).read_text()
    assert list(missing_sections(text)) == []
    assert 15 <= len(text.splitlines()) <= 60
    assert [
        line for line in text.splitlines() if len(line) > 100 and not line.startswith("|")
    ] == []


@pytest.mark.parametrize("path", DECISIONS)
def test_a_decision_names_only_files_that_exist(path: str) -> None:
    assert [
        name
        for name in FULL_PATH.findall((REPOSITORY / path).read_text())
        if not (REPOSITORY / name).exists()
    ] == []


def test_the_index_lists_each_decision_once_under_its_stage() -> None:
    listed, stage = [], ""
    for line in INDEX.read_text().splitlines():
        if line.startswith("## "):
            stage = line.removeprefix("## ")
        elif entry := re.fullmatch(r"- \[(\d{4}) (.+)\]\((\1-.+\.md)\): .{10,100}", line):
            head = f"# {entry[2]}\n\nStatus: accepted ({stage})\n"
            assert (INDEX.parent / entry[3]).read_text().startswith(head), line
            listed.append(FOLDER + entry[3])
    assert sorted(listed) == sorted(DECISIONS)


def test_the_stages_of_the_index_follow_the_pipeline() -> None:
    assert re.findall(r"^## (.+)$", INDEX.read_text(), re.MULTILINE) == STAGES


def test_a_missing_section_and_an_unknown_stage_are_found() -> None:
    assert list(
        missing_sections(
            "# One\n\nStatus: accepted (Nowhere)\n\n## Context\n\nA fact.\n\n## Decision\n"
        )
    ) == [
        "the sections are ['Context', 'Decision']",
        "Decision is empty",
        "the title has over eight words, or the stage is unknown: # One\n\nStatus: "
        "accepted (Nowhere)\n",
    ]
