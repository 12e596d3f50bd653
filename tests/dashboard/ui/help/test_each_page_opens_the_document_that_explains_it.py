"""Contextual help: the foot of each page links to the document and heading that explain it."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.projects.models import Project
from dashboard.ui.layout.navigation import HELP, build_help_link
from dashboard.ui.pages.help.pages import build_page


@pytest.mark.parametrize(("prefix", "document", "heading"), HELP)
def test_each_link_leads_to_a_heading_that_exists(prefix: str, document: str, heading: str) -> None:
    page = build_page(document)
    assert page is not None
    assert not heading or f'id="s-{heading}"' in page.body_html


def test_a_page_links_to_its_help(signed_in: Client, project: Project) -> None:
    page = signed_in.get("/p/ranking/alerts/").content.decode()
    assert f'href="{build_help_link("alerts")}"' in page
    assert build_help_link("alerts").endswith("/dashboard/pages/#s-alerts")


def test_a_page_without_a_document_links_to_the_index() -> None:
    assert build_help_link("nowhere") == reverse("help")


def test_the_longest_name_counts_first() -> None:
    assert build_help_link("alert_grades").endswith("#s-alert-quality")
