"""Spreadsheets execute no cell of a file, regardless of the character that separates cells."""

from __future__ import annotations

import csv
import io

import pytest

from dashboard.ui.http.csv_export import csv_response, escape_csv_cell

FORMULAS = ("=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "\n=1+1", "\uff1d1+1", " =1+1")
PARTS = (";", "\t", "\n", "\r", ";'", '; "')


@pytest.mark.parametrize("text", FORMULAS)
def test_a_cell_that_begins_like_a_formula_is_quoted(text: str) -> None:
    assert escape_csv_cell(text) == f"'{text}" or escape_csv_cell(text).startswith("'")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("formula", ["=cmd()", "+1", "-1", "@x"])
def test_a_formula_after_another_separator_is_quoted(part: str, formula: str) -> None:
    cell = escape_csv_cell(f"model{part}{formula}")
    behind = cell.split(part[0], 1)[1].lstrip("'\" ")
    assert behind == formula and f"'{formula}" in cell


@pytest.mark.parametrize(
    "value", [1.5, -3, 0, "model-1", "a;b", "x = 1; y = 2", "2026-11-26T10:00:00+00:00", True]
)
def test_other_cells_are_unchanged(value: object) -> None:
    assert escape_csv_cell(value) == value


def test_a_file_can_be_read_in_both_dialects() -> None:
    text = csv_response([["name", "version"], ["a;=1+1", "=2"]], "x.csv").content.decode()
    assert list(csv.reader(io.StringIO(text)))[1] == ["a;'=1+1", "'=2"]
    for line in csv.reader(io.StringIO(text), delimiter=";"):
        assert not any(
            cell.strip("'\" ").startswith("=") and not cell.startswith("'") for cell in line
        )
