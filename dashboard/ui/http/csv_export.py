"""CSV export of tables, protected against formula injection in spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from django.http import HttpResponse

FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
FORMULA_INSIDE_PATTERN = re.compile(r"([;\t\r\n]['\" ]*)(?=[=+\-@＝＋－＠])")
"""Matches a formula after a character that separates cells in some languages or settings of
spreadsheets."""


def csv_response(rows: Iterable[Sequence[Any]], filename: str) -> HttpResponse:
    """Returns the rows as a download; missing values are empty cells."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([escape_csv_cell(value) for value in row] for row in rows)
    response = HttpResponse(out.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def escape_csv_cell(value: Any) -> Any:
    """Quotes texts that a spreadsheet would run as a formula, at the start of the text and after
    possible cell separators."""
    if value is None or not isinstance(value, str):
        return "" if value is None else value
    text = FORMULA_INSIDE_PATTERN.sub(r"\1'", value)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA_PREFIXES) else text
