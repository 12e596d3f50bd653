"""Every answer about compilewatch in the comparison with other tools links to an existing test."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "dashboard/docs/comparison.md"
ROWS = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]


def test_every_row_has_an_answer_for_every_tool() -> None:
    assert len(ROWS) > 10
    assert {len(row) for row in ROWS} == {len(ROWS[0])}


def test_every_answer_of_ours_links_to_a_test() -> None:
    for question, ours, *_ in ROWS[1:]:
        found = re.findall(r"\]\(([\w./]+\.py)\)", ours)
        assert found, f"no test is named for: {question}"
        for name in found:
            assert "\ndef test_" in (PAGE.parent / name).read_text(), name
