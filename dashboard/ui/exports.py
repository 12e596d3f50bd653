"""Tables as files: CSV that a spreadsheet opens without running anything in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from django.http import HttpResponse

RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_response(rows: Iterable[Sequence[Any]], filename: str) -> HttpResponse:
    """The rows as a download; absent values are empty cells."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    response = HttpResponse(out.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def csv_cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is quoted."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(RISKY) else value
