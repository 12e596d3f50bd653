"""Tables as files: CSV that a spreadsheet opens without running anything in it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from django.http import HttpResponse

FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
FORMULA_INSIDE_PATTERN = re.compile(r"([;\t\r\n]['\" ]*)(?=[=+\-@＝＋－＠])")
"""A formula behind a character that parts cells where a spreadsheet's language or settings choose
it."""


def csv_response(rows: Iterable[Sequence[Any]], filename: str) -> HttpResponse:
    """The rows as a download; absent values are empty cells."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([escape_csv_cell(value) for value in row] for row in rows)
    response = HttpResponse(out.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def escape_csv_cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is quoted, at its start and where it might
    be parted."""
    if value is None or not isinstance(value, str):
        return "" if value is None else value
    text = FORMULA_INSIDE_PATTERN.sub(r"\1'", value)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA_PREFIXES) else text
