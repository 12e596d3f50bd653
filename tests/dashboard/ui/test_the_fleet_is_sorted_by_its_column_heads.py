"""Order of the Fleet table: by a column, upwards or downwards, stated for screen readers."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from dashboard.alerts.models import Alert
from tests.dashboard.ui.fleet_page import list_names, read_page

pytestmark = pytest.mark.django_db
URGENT, CHAT, EMBED = "ranker", "llm-7b-chat", "vit-embed"
SORTED = re.compile(r'c-(\w+)"\s+aria-sort="(\w+)"')


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("-status", [URGENT, CHAT, EMBED]),
        ("status", [EMBED, CHAT, URGENT]),
        ("model", [CHAT, URGENT, EMBED]),
        ("-model", [EMBED, URGENT, CHAT]),
        ("-p50", [URGENT, CHAT, EMBED]),
        ("p50", [EMBED, CHAT, URGENT]),
        ("compiled", [URGENT, CHAT, EMBED]),
        ("-cold", [CHAT, URGENT, EMBED]),
        ("-alert", [URGENT, CHAT, EMBED]),
    ],
)
def test_rows_are_in_the_order_of_the_column(
    signed_in: Client, alert: Alert, sort: str, names: list[str]
) -> None:
    assert list_names(signed_in, f"?sort={sort}") == names


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ("status", "descending")),
        ("?sort=p99", ("p99", "ascending")),
        ("?sort=-since", ("since", "descending")),
        ("?sort=unknown", ("status", "descending")),
    ],
)
def test_only_the_sorted_column_has_a_direction(
    signed_in: Client, alert: Alert, query: str, expected: tuple[str, str]
) -> None:
    assert SORTED.findall(read_page(signed_in, query)) == [expected]


def test_a_head_of_the_sorted_column_reverses_the_order(signed_in: Client, alert: Alert) -> None:
    head = read_page(signed_in, "?sort=-p50&q=env:production").split("c-p50")[1].split("</th>")[0]
    assert 'href="?sort=p50&q=env%3Aproduction"' in head


def test_a_file_in_the_order_of_p50_has_the_latest_p50_of_each_model(
    signed_in: Client, alert: Alert
) -> None:
    values = [
        {one["model"]: one["p50_seconds"] for one in answer.json()["models"]}
        for answer in map(
            signed_in.get, ("/p/ranking/fleet.json", "/p/ranking/fleet.json?sort=p50")
        )
    ]
    assert values[0] == values[1] and all(values[0].values())
