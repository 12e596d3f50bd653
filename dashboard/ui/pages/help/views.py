"""Help views: the documents, the glossary, and all components with their states for developers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.accounts.models import User
from dashboard.common import clock
from dashboard.fleet.fold.finding_state import RULE
from dashboard.regressions.models import VerdictKind
from dashboard.ui.charts.sparkline import spark_draw
from dashboard.ui.http.paging import paginate
from dashboard.ui.http.sortable_table import Column, Order
from dashboard.ui.pages.help.glossary import GLOSSARY
from dashboard.ui.pages.help.pages import build_index, build_page
from dashboard.ui.pages.search.queries import normalize_search_text
from dashboard.ui.pages.search.results import build_help_group

RESULTS_OF_HELP = 20
TOKENS = {
    "Surfaces, lines, ink": (
        "bg",
        "surface",
        "surface-2",
        "surface-3",
        "line",
        "line-2",
        "control-line",
        "ink",
        "ink-2",
        "ink-3",
    ),
    "Accent and verdicts": (
        "accent",
        "accent-ink",
        "accent-tint",
        "rollback",
        "rollback-tint",
        "watch",
        "watch-tint",
        "healthy",
    ),
    "Series": tuple(f"series-{number}" for number in range(1, 7)),
    "Phases of a start": tuple(f"phase-{number}" for number in range(1, 9)),
}
TYPES = (
    ("28", "2 min 41 s"),
    ("20", "ranker, 18.4 ms"),
    ("16", "Roll back 2026.11.3"),
    ("14", "p50 is 31% slower"),
    ("13", "Body, tables, controls"),
)
LABELS = (
    ("REGRESSED", True, False),
    ("REGRESSED", False, True),
    ("REGRESSED", False, False),
    ("IMPROVED", False, False),
    ("NO_CHANGE", False, False),
    ("NOT_ENOUGH_DATA", False, False),
)
STATES = (
    "healthy",
    "starting",
    "warming",
    "degraded",
    "eager",
    "compiling",
    "hung",
    "silent",
    "blind",
    "ended",
)
ROLES = ((1, "baseline"), (2, "newest"), (3, "third"), (4, "fourth"), (5, "fifth"), (6, "sixth"))
COLUMNS = (
    Column("Instance", "name"),
    Column("State", "state"),
    Column("p50", "p50", help="p50", right=True, most_first=True),
    Column("Eager", help="eager", right=True),
)
ROWS = (
    ("gpu-h100-03 / rank 0", "eager", 0.0195, 0.31),
    ("gpu-h200-11 / rank 1", "healthy", 0.0131, 0.0),
    ("gpu-l40s-07 / rank 0", "silent", None, None),
)


def may_see_components(user: User) -> bool:
    """True for staff, and for all users in development and in the embedded mode."""
    return user.is_staff or settings.DEBUG or settings.EMBEDDED


@require_safe
@login_required
def help_index(request: HttpRequest) -> HttpResponse:
    """All documents by area, and those that contain the words of `q`."""
    text = normalize_search_text(request.GET.get("q", ""))
    group = build_help_group(text, limit=RESULTS_OF_HELP)
    context = {"areas": build_index(), "q": text, "groups": [group] if group.hits else []}
    return render(request, "ui/help/index.html", context)


@require_safe
@login_required
def help_document(request: HttpRequest, document: str) -> HttpResponse:
    """One document. The URL contains a key of the registry, never the path of a file."""
    page = build_page(document)
    if page is None:
        raise Http404("Document not found.")
    return render(request, "ui/help/document.html", {"page": page})


@require_safe
@login_required
def glossary(request: HttpRequest) -> HttpResponse:
    """All glossary entries."""
    return render(request, "ui/help/numbers.html", {"glossary": GLOSSARY, "finding_rule": RULE})


@require_safe
@login_required
def components(request: HttpRequest) -> HttpResponse:
    """Both themes side by side, rendered with the partials of the pages."""
    if not (isinstance(request.user, User) and may_see_components(request.user)):
        raise PermissionDenied("This page is for developers.")
    order = Order.read(request.GET, COLUMNS, "-p50")
    rows = order.sort_rows(
        ROWS, {"name": lambda row: row[0], "state": lambda row: row[1], "p50": lambda row: row[2]}
    )
    page = paginate(request.GET, total=len(rows), size=2)
    heads = order.heads(request.GET, COLUMNS)
    context: dict[str, Any] = {
        "themes_shown": [
            {
                "name": name,
                "heads": [
                    replace(head, place=f"{name}-{place}") for place, head in enumerate(heads)
                ],
            }
            for name in ("light", "dark")
        ],
        "tokens": TOKENS,
        "types": TYPES,
        "verdicts": VerdictKind.values,
        "labels": LABELS,
        "states": STATES,
        "roles": ROLES,
        "page": page,
        "rows": rows[page.first : page.first + page.size],
        "spark": spark_draw(
            [
                (1, {place: (0.0140 + 0.0003 * (place % 5), 0.042) for place in range(48)}),
                (
                    2,
                    {
                        place: (0.0184 + 0.0002 * (place % 4), 0.061)
                        for place in (*range(30, 38), *range(41, 60))
                    },
                ),
            ],
            60,
            [30],
        ),
        "moments": [
            clock.now() - timedelta(seconds=8),
            clock.now() - timedelta(hours=3),
            clock.now() - timedelta(days=9),
        ],
        "numbers_said": [None, 0, 0.1134, 18.42, 12345],
    }
    return render(request, "ui/help/components/page.html", context)
