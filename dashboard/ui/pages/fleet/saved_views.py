"""Saved views of the Fleet page: named addresses of a person in a project."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from dashboard.ui.http.access import ProjectRequest

KEPT = ("q", "env", "group", "sort", "verdict", "range")
"""Parameters that belong to a view; the page number and open rows do not."""


def canonical_query(text: str) -> str:
    """The parameters of a view in a fixed order, without empty ones."""
    given = dict(parse_qsl(text.removeprefix("?"), max_num_fields=50))
    return urlencode([(name, given[name]) for name in KEPT if given.get(name)])


def list_saved_views(request: ProjectRequest) -> dict[str, Any]:
    """The views as (name, query, current), whether all models are shown, and the current query."""
    here = canonical_query(request.META.get("QUERY_STRING", ""))
    views = [
        (str(one["name"]), str(one["query"]), one["query"] == here)
        for one in request.membership.fleet_views
        if isinstance(one, dict) and "name" in one and "query" in one
    ]
    return {
        "saved_views": views,
        "view_query": here,
        "current_view": next((name for name, _, current in views if current), ""),
    }
