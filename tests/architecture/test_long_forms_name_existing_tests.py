"""Each entry of the list of long forms names a file and a test that exist, and its file keeps a
test, or another file tests the behaviour, in `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environment import LONG_FORMS
from tests.long_forms import LONG_TESTS, find_marker

TESTS = Path(__file__).parents[1]
ENTRIES = [entry for entries in LONG_TESTS.values() for entry in entries]


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_entry_exists(entry: str) -> None:
    file, _, test = entry.partition("::")
    assert f"def {test.partition('[')[0]}" in (TESTS / file).read_text()


def test_every_marker_has_a_target() -> None:
    assert LONG_TESTS.keys() <= LONG_FORMS.keys()


def test_an_open_bracket_begins_the_name_of_a_case() -> None:
    file = "dashboard/accounts/test_answers_of_a_hostile_provider_are_one_sentence.py"
    test = f"tests/{file}::test_a_broken_answer_is_one_page_and_one_log_line"
    assert find_marker(f"{test}[a list-/token/]") == "pages_only"
    assert find_marker(f"{test}[a failure-/token/]") is None
    assert find_marker(f"{test}s[a list-/token/]") is None
