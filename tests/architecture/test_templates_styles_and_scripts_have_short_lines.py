"""Lines of templates, styles and scripts have at most 120 columns; djlint has the same limit."""

from __future__ import annotations

import json

from tests.architecture.tree import REPOSITORY, tracked

MAX_COLUMNS = 120
ENDINGS = (".html", ".css", ".js")


def test_lines_stay_short() -> None:
    paths = [path for path in tracked() if path.startswith("dashboard/") and path.endswith(ENDINGS)]
    assert {ending for path in paths for ending in ENDINGS if path.endswith(ending)} == set(ENDINGS)
    assert not [
        f"{path}:{number} has {len(line)} columns"
        for path in paths
        for number, line in enumerate((REPOSITORY / path).read_text().splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]


def test_djlint_has_the_same_limit() -> None:
    settings = json.loads((REPOSITORY / ".djlintrc").read_text())
    assert (settings["max_line_length"], settings["indent"]) == (MAX_COLUMNS, 2)
