"""Tables: the address defines order and page, an invalid one gives the default, and missing values
come last."""

import pytest
from django.http import QueryDict

from dashboard.ui.http.paging import paginate
from dashboard.ui.http.sortable_table import Column, Order

COLUMNS = (
    Column("Name", "name"),
    Column("Cost", "cost", right=True, most_first=True),
    Column("Note"),
)


@pytest.mark.parametrize(
    ("query", "key", "descending"),
    [
        ("", "cost", True),
        ("sort=name", "name", False),
        ("sort=-name", "name", True),
        ("sort=note", "cost", True),
        ("sort=--name", "cost", True),
        ("sort='; drop", "cost", True),
    ],
)
def test_the_address_defines_the_order(query: str, key: str, descending: bool) -> None:
    order = Order.read(QueryDict(query), COLUMNS, "-cost")
    assert (order.key, order.descending) == (key, descending)


def test_a_column_head_reverses_its_order_and_links_to_the_first_page() -> None:
    query = QueryDict("sort=name&page=3&env=production")
    heads = Order.read(query, COLUMNS, "-cost").heads(query, COLUMNS)
    assert heads[0].direction == "ascending"
    assert QueryDict(heads[0].url[1:]).dict() == {"sort": "-name", "env": "production"}
    assert QueryDict(heads[1].url[1:]).dict() == {"sort": "-cost", "env": "production"}
    assert heads[2].url == ""


def test_missing_values_come_last_in_both_directions() -> None:
    rows = [("a", None), ("b", 1.0), ("c", 3.0)]
    keys = {"cost": lambda row: row[1]}
    assert Order("cost", True).sort_rows(rows, keys) == [("c", 3.0), ("b", 1.0), ("a", None)]
    assert Order("cost", False).sort_rows(rows, keys) == [("b", 1.0), ("c", 3.0), ("a", None)]


def test_all_database_fields_of_a_column_are_reversed_together() -> None:
    assert Order("name", True).by({"name": ("model__name", "-pk")}) == ["-model__name", "pk"]


@pytest.mark.parametrize(
    ("asked", "number"),
    [("", 1), ("2", 2), ("99999", 3), ("0", 1), ("-1", 1), ("x", 1), ("²", 1), ("9" * 30, 1)],
)
def test_a_page_beyond_the_end_is_the_last_page(asked: str, number: int) -> None:
    page = paginate(QueryDict(f"page={asked}"), total=101, size=50)
    assert page.number == number
    assert page.shown == (50 * number - 49, min(50 * number, 101))
    assert bool(page.before) == (number > 1)
    assert bool(page.after) == (number < 3)


def test_a_table_without_rows_is_one_empty_page() -> None:
    page = paginate(QueryDict(""), total=0, size=50)
    assert (page.shown, page.before, page.after) == ((0, 0), "", "")
