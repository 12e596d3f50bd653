"""Reading of the Fleet page in tests: its rows, chips and links."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import parse_qs

from django.test import Client

from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project

NAME = re.compile(r'class="mname" href="[^"]*"\s*><bdi>(.*?)</bdi>')


def read_page(client: Client, query: str = "") -> str:
    """The page at an address."""
    answer = client.get(f"/p/ranking/{query}")
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def list_names(client: Client, query: str = "") -> list[str]:
    """Names of the models on a page, in order."""
    return NAME.findall(read_page(client, query))


def list_links(html: str, label: str) -> list[dict[str, list[str]]]:
    """Parameters of the links with this text or accessible name."""
    found = re.findall(r'<a ([^>]*)href="\?([^"]*)"([^>]*)>\s*(.*?)</a>', html, re.S)
    return [
        parse_qs(query)
        for before, query, after, text in found
        if label in re.sub(r"<.*?>", "", text) or f'aria-label="{label}"' in before + after
    ]


def create_models(project: Project, names: list[str]) -> list[WatchedModel]:
    """Models that have no version yet."""
    now = clock.now()
    return WatchedModel.objects.bulk_create(
        WatchedModel(project=project, name=name, first_seen_at=now, last_seen_at=now)
        for name in names
    )
