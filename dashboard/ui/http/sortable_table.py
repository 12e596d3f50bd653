"""Server-side table sorting. The order is in the URL, so shared links show the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.http import QueryDict

from dashboard.ui.http.time_range import replace_query

T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """A column heading: label, sort key (empty: not sortable), glossary term, and alignment."""

    label: str
    sort: str = ""
    help: str = ""
    right: bool = False
    unit: str = ""
    hidden: bool = False
    most_first: bool = False


@dataclass(frozen=True)
class Head:
    """A column heading for the template: `url` sorts by the column or reverses the order; `place`
    distinguishes two tables on one page."""

    column: Column
    url: str = ""
    direction: str = ""
    place: str = ""


@dataclass(frozen=True)
class Order:
    """The sort order from the URL: `-cost` sorts by cost, highest first."""

    key: str
    descending: bool

    @classmethod
    def read(
        cls, query: QueryDict, columns: Sequence[Column], default: str, *, name: str = "sort"
    ) -> Order:
        """Reads the order from the URL; an unknown order is replaced by the default."""
        known = {column.sort for column in columns if column.sort} | {default.removeprefix("-")}
        asked = query.get(name, "")
        text = asked if asked.removeprefix("-") in known else default
        return cls(text.removeprefix("-"), text.startswith("-"))

    def heads(
        self, query: QueryDict, columns: Sequence[Column], *, name: str = "sort", page: str = "page"
    ) -> list[Head]:
        """All headings with their links. A change of the order returns to the first page."""
        return [self._head(query, column, name, page) for column in columns]

    def _head(self, query: QueryDict, column: Column, name: str, page: str) -> Head:
        if not column.sort:
            return Head(column)
        here = column.sort == self.key
        down = not self.descending if here else column.most_first
        url = replace_query(query, **{name: f"{'-' if down else ''}{column.sort}", page: ""})
        return Head(column, url, ("descending" if self.descending else "ascending") if here else "")

    def by(self, columns: dict[str, str | Sequence[str]]) -> list[str]:
        """Field names for `order_by`, reversed if the order is descending."""
        fields = columns[self.key]
        names = [fields] if isinstance(fields, str) else list(fields)
        return [_reverse_field(one) if self.descending else one for one in names]

    def sort_rows(self, rows: Iterable[T], keys: dict[str, Callable[[T], Any]]) -> list[T]:
        """Sorts rows in memory. Rows without a value come last in both directions."""
        key = keys[self.key]
        rows = list(rows)
        known = [row for row in rows if key(row) is not None]
        return sorted(known, key=key, reverse=self.descending) + [
            row for row in rows if key(row) is None
        ]


def _reverse_field(field_name: str) -> str:
    return field_name.removeprefix("-") if field_name.startswith("-") else f"-{field_name}"
