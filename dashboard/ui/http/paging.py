"""Paging of long tables: rows of a page and URLs of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import QueryDict

from dashboard.ui.http.time_range import replace_query

MAX_PAGE_NUMBER = 10_000


@dataclass(frozen=True)
class TablePage:
    """One page of `total` rows. Page numbers begin at 1; a URL is empty if that page does not
    exist."""

    number: int
    size: int
    total: int
    before: str = ""
    after: str = ""

    @property
    def first(self) -> int:
        """Offset of the first row, from 0."""
        return (self.number - 1) * self.size

    @property
    def last(self) -> int:
        """Number of the last page."""
        return max(1, -(-self.total // self.size))

    @property
    def shown(self) -> tuple[int, int]:
        """Range of row numbers, from 1."""
        return min(self.first + 1, self.total), min(self.first + self.size, self.total)


def read_page_number(query: QueryDict, *, name: str = "page") -> int:
    """The page number of the URL; 1 if the number is invalid."""
    text = query.get(name, "")
    return (
        min(max(int(text), 1), MAX_PAGE_NUMBER)
        if text.isascii() and text.isdecimal() and len(text) < 6
        else 1
    )


def paginate(query: QueryDict, *, total: int, size: int, name: str = "page") -> TablePage:
    """The requested page, or the last page if the number is too high."""
    number = min(read_page_number(query, name=name), max(1, -(-total // size)))
    before = (
        replace_query(query, **{name: str(number - 1) if number > 2 else ""}) if number > 1 else ""
    )
    after = replace_query(query, **{name: str(number + 1)}) if number * size < total else ""
    return TablePage(number, size, total, before, after)
