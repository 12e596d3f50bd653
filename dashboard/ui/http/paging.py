"""Pages of a long table: which rows, and the addresses of the pages around."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import QueryDict

from dashboard.ui.http.time_range import replace_query

MAX_PAGE_NUMBER = 10_000


@dataclass(frozen=True)
class TablePage:
    """One page of `total` rows; numbers begin at 1, an address is empty where there is no such
    page."""

    number: int
    size: int
    total: int
    before: str = ""
    after: str = ""

    @property
    def first(self) -> int:
        """The place of its first row, from 0."""
        return (self.number - 1) * self.size

    @property
    def last(self) -> int:
        """The number of the last page."""
        return max(1, -(-self.total // self.size))

    @property
    def shown(self) -> tuple[int, int]:
        """The places of its rows, from 1."""
        return min(self.first + 1, self.total), min(self.first + self.size, self.total)


def read_page_number(query: QueryDict, *, name: str = "page") -> int:
    """The page the address asks for; anything strange is the first."""
    text = query.get(name, "")
    return (
        min(max(int(text), 1), MAX_PAGE_NUMBER)
        if text.isascii() and text.isdecimal() and len(text) < 6
        else 1
    )


def paginate(query: QueryDict, *, total: int, size: int, name: str = "page") -> TablePage:
    """The page of the address, the last one where there are fewer."""
    number = min(read_page_number(query, name=name), max(1, -(-total // size)))
    before = (
        replace_query(query, **{name: str(number - 1) if number > 2 else ""}) if number > 1 else ""
    )
    after = replace_query(query, **{name: str(number + 1)}) if number * size < total else ""
    return TablePage(number, size, total, before, after)
