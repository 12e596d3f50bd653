"""Every answer about compilewatch in the README's table beside other tools links to a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "README.md").read_text().partition("## Beside other tools")[2].partition("\n## ")[0]
ROWS = [line.split(" | ") for line in TABLE.splitlines() if line.startswith("| ")]


def test_every_row_answers_for_every_tool() -> None:
    assert len(ROWS) > 10
    assert {len(row) for row in ROWS} == {len(ROWS[0])}


def test_every_answer_of_ours_links_to_a_test() -> None:
    for question, ours, *_ in ROWS[1:]:
        found = re.findall(r"\]\((tests/[\w/]+\.py)\)", ours)
        assert found, f"no test is named for: {question}"
        for name in found:
            assert "\ndef test_" in (ROOT / name).read_text(), name
