"""Tables that are sorted by the server, with the order in the address, so that a link shows what
its sender saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.http import QueryDict

from dashboard.ui.http.time_range import replace_query

T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """A head: its words, the key it is sorted by (empty: not sortable), the word of the glossary
    that explains it, and its side."""

    label: str
    sort: str = ""
    help: str = ""
    right: bool = False
    unit: str = ""
    hidden: bool = False
    most_first: bool = False


@dataclass(frozen=True)
class Head:
    """A head as it is drawn: `url` sorts by it, or turns the order round; `place` tells two tables
    of one page apart."""

    column: Column
    url: str = ""
    direction: str = ""
    place: str = ""


@dataclass(frozen=True)
class Order:
    """What the rows are sorted by, as the address says: `-cost` is the most first."""

    key: str
    descending: bool

    @classmethod
    def read(
        cls, query: QueryDict, columns: Sequence[Column], default: str, *, name: str = "sort"
    ) -> Order:
        """The order of the address; one that the table does not have is the default."""
        known = {column.sort for column in columns if column.sort} | {default.removeprefix("-")}
        asked = query.get(name, "")
        text = asked if asked.removeprefix("-") in known else default
        return cls(text.removeprefix("-"), text.startswith("-"))

    def heads(
        self, query: QueryDict, columns: Sequence[Column], *, name: str = "sort", page: str = "page"
    ) -> list[Head]:
        """Every head with its link; a change of the order leads back to the first page."""
        return [self._head(query, column, name, page) for column in columns]

    def _head(self, query: QueryDict, column: Column, name: str, page: str) -> Head:
        if not column.sort:
            return Head(column)
        here = column.sort == self.key
        down = not self.descending if here else column.most_first
        url = replace_query(query, **{name: f"{'-' if down else ''}{column.sort}", page: ""})
        return Head(column, url, ("descending" if self.descending else "ascending") if here else "")

    def by(self, columns: dict[str, str | Sequence[str]]) -> list[str]:
        """For `order_by`: the fields of the key, all of them turned round where the order is."""
        fields = columns[self.key]
        names = [fields] if isinstance(fields, str) else list(fields)
        return [_reverse_field(one) if self.descending else one for one in names]

    def sort_rows(self, rows: Iterable[T], keys: dict[str, Callable[[T], Any]]) -> list[T]:
        """Rows in memory; one without a value comes last in both directions."""
        key = keys[self.key]
        rows = list(rows)
        known = [row for row in rows if key(row) is not None]
        return sorted(known, key=key, reverse=self.descending) + [
            row for row in rows if key(row) is None
        ]


def _reverse_field(field_name: str) -> str:
    return field_name.removeprefix("-") if field_name.startswith("-") else f"-{field_name}"
