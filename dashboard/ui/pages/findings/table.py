"""Table of findings: its filters from the URL, its columns and its chips, for the project and for a
model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import QueryDict

from dashboard.fleet.selectors.findings.finding_list import (
    SORTS,
    STATES,
    FindingFilter,
    FindingList,
)
from dashboard.ui.http.paging import paginate
from dashboard.ui.http.sortable_table import Column, Order
from dashboard.ui.http.time_range import replace_query
from dashboard.ui.pages.findings.list import finding_rows, format_kind
from dashboard.ui.pages.model.lookup import parse_whole_number

PAGE_SIZE = 50
MAX_TEXT_LENGTH = 200
COLUMNS = (
    Column("Finding"),
    Column("Model"),
    Column("State"),
    Column("Times", "times", right=True, most_first=True),
    Column("Instances", right=True),
    Column("First seen", "first", right=True, most_first=True),
    Column("Last seen", "last", right=True, most_first=True),
)


def read_filter(query: QueryDict) -> FindingFilter:
    """The filters of the URL. A version is a filter only together with its model."""
    state, model = query.get("state", ""), parse_whole_number(query.get("model"))
    return FindingFilter(
        model_id=model,
        version_id=parse_whole_number(query.get("version")) if model is not None else None,
        environment=query.get("env", ""),
        kind=query.get("kind", "")[:64],
        state=state if state in STATES else "",
        text=query.get("q", "").strip()[:MAX_TEXT_LENGTH],
        order=tuple(_order(query, COLUMNS).by(dict(SORTS))),
    )


def build_table_context(
    query: QueryDict,
    wanted: FindingFilter,
    found: FindingList,
    columns: Sequence[Column] = COLUMNS,
    size: int = PAGE_SIZE,
) -> dict[str, Any]:
    """The rows, and the filters, each with its URL and the number of its findings."""
    states = [
        (
            state,
            replace_query(query, state="" if state == wanted.state else state, page=""),
            found.states.get(state, 0),
            state == wanted.state,
        )
        for state in STATES
    ]
    # A selected value stays in the list if it has no findings.
    asked = {wanted.kind: 0} if wanted.kind else {}
    kinds = sorted({**asked, **found.kinds}.items(), key=lambda item: (-item[1], item[0]))
    return {
        "rows": finding_rows(found.rows),
        "total": found.total,
        "page": paginate(query, total=found.total, size=size),
        "wanted": wanted,
        "query": query.urlencode(),
        "heads": _order(query, columns).heads(query, columns),
        "sort": query.get("sort", ""),
        "states": [one for one in states if one[2] or one[3]],
        "kinds": [(kind, f"{format_kind(kind)} ({count:,})") for kind, count in kinds],
        "any_state": replace_query(query, state="", page=""),
    }


def _order(query: QueryDict, columns: Sequence[Column]) -> Order:
    return Order.read(query, columns, "-last")
