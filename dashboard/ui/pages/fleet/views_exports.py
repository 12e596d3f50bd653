"""Table of the Fleet page as JSON and CSV, at the URL of the page with a file extension."""

from __future__ import annotations

from django.http import HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.fleet.content import read_content, read_rows
from dashboard.ui.pages.fleet.exports import (
    COLUMNS,
    fleet_cells,
    serialize_fleet_row,
    serialize_windows,
)


@require_safe
@project_page()
def fleet_json(request: ProjectRequest) -> HttpResponse:
    """One row per model that matches the filters, on all pages, in the order of the page, with
    numbers; `windows` states the time of the values."""
    content = read_content(request, all_latencies=True)
    rows = read_rows(content, content.matching)
    return mark_uncached(
        JsonResponse(
            {
                "windows": serialize_windows(content.window),
                "models": [serialize_fleet_row(row) for row in rows],
            }
        )
    )


@require_safe
@project_page()
def fleet_csv(request: ProjectRequest) -> HttpResponse:
    """The fleet as a table."""
    content = read_content(request, all_latencies=True)
    rows = read_rows(content, content.matching)
    cells = [fleet_cells(row) for row in rows]
    return mark_uncached(csv_response([list(COLUMNS), *cells], f"{request.project.slug}-fleet.csv"))
