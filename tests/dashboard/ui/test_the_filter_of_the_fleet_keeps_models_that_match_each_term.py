"""The filter of the Fleet page: each term is a chip, and a model has to match all of them."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.alerts.models import Alert
from tests.dashboard.ui.fleet_page import list_links, list_names, read_page

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("llm", ["llm-7b-chat"]),
        ("LLM", ["llm-7b-chat"]),
        ("model:embed", ["vit-embed"]),
        ("name:embed", ["vit-embed"]),
        ("2026.11.2", ["ranker", "vit-embed"]),
        ("version:2026.11.1", ["llm-7b-chat"]),
        ("gpu:h200", ["ranker", "llm-7b-chat", "vit-embed"]),
        ("gpu:L4", []),
        ("env:production+status:watch", ["llm-7b-chat"]),
        ('status:"roll back"', ["ranker"]),
        ("ranker+status:watch", []),
        ("owner:ranker", []),
    ],
)
def test_a_term_selects_by_its_field_or_by_any_field(
    signed_in: Client, alert: Alert, query: str, names: list[str]
) -> None:
    assert list_names(signed_in, f"?q={query}") == names


def test_a_chip_removes_its_term_and_keeps_the_others(signed_in: Client, alert: Alert) -> None:
    html = read_page(signed_in, "?q=gpu:H200+status:watch&sort=model&page=1")
    [link] = list_links(html, "Remove filter status: watch")
    assert link == {"q": ["gpu:H200"], "sort": ["model"]}


def test_a_selected_environment_is_a_chip(signed_in: Client, alert: Alert) -> None:
    html = read_page(signed_in, "?env=production")
    assert list_links(html, "Remove filter environment: production") == [{}]


def test_a_filter_without_a_match_offers_all_models(signed_in: Client, alert: Alert) -> None:
    html = read_page(signed_in, "?q=nothing&sort=p50")
    assert "No model matches" in html
    assert list_links(html, "Show all models") == [{"sort": ["p50"]}]


@pytest.mark.parametrize(
    "query", ['q="', "q=:", "q=gpu:", "q=" + "a " * 3000, "q=%ff%fe", "q=<b>x</b>"]
)
def test_no_text_breaks_the_filter(signed_in: Client, alert: Alert, query: str) -> None:
    answer = signed_in.get(f"/p/ranking/?{query}")
    assert answer.status_code == 200
    assert b"<b>x</b>" not in answer.content
