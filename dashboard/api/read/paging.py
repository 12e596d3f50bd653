"""Cursor pagination: stable while rows are added, and no page counts the rows before it."""

from __future__ import annotations

import base64
import binascii
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from ninja import Schema
from pydantic import Field

from dashboard.ingest.body_decoder import RefusalError

M = TypeVar("M", bound=Model)
MAX_ID = 2**53


class PageQuery(Schema):
    """Query parameters of a page: maximum number of rows, and the cursor."""

    limit: int = Field(50, ge=1, le=200, description="Maximum number of items per response.")
    cursor: str = Field(
        "",
        max_length=100,
        description="`next` of the previous response; without it, the first items are returned.",
    )


def paginate_rows(
    rows: QuerySet[M], asked: PageQuery, *, by: str = "pk", newest_first: bool = True
) -> tuple[list[M], str | None]:
    """Returns the rows after the cursor and the cursor of the next page, None at the end.

    `by` names a unique integer column, which orders the rows.
    """
    if asked.cursor:
        rows = rows.filter(
            **{f"{by}__lt" if newest_first else f"{by}__gt": _decode_cursor(asked.cursor)}
        )
    found = list(rows.order_by(f"-{by}" if newest_first else by)[: asked.limit + 1])
    if len(found) <= asked.limit:
        return found, None
    return found[: asked.limit], _encode_cursor(getattr(found[asked.limit - 1], by))


def _encode_cursor(place: Any) -> str:
    return base64.urlsafe_b64encode(f"after {place}".encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> int:
    try:
        text = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode(
            "ascii"
        )
    except (binascii.Error, ValueError):
        text = ""
    word, _, number = text.partition(" ")
    if word != "after" or not number.isdecimal() or int(number[:20]) > MAX_ID:
        raise RefusalError(
            "bad_request", "cursor: expected the value of `next` from an earlier response."
        )
    return int(number)
