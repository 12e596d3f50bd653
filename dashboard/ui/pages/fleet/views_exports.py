"""Table of the Fleet page as JSON and CSV, at the URL of the page with a file extension."""

from __future__ import annotations

from django.http import HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.fleet.exports import (
    COLUMNS,
    fleet_cells,
    serialize_fleet_row,
    serialize_windows,
)
from dashboard.ui.pages.fleet.views import fleet_content


@require_safe
@project_page()
def fleet_json(request: ProjectRequest) -> HttpResponse:
    """One row per model, in the order of the page, with numbers; `windows` states the time of the
    values."""
    content = fleet_content(request)
    return mark_uncached(
        JsonResponse(
            {
                "windows": serialize_windows(content["window"]),
                "models": [serialize_fleet_row(row) for row in content["rows"]],
            }
        )
    )


@require_safe
@project_page()
def fleet_csv(request: ProjectRequest) -> HttpResponse:
    """The fleet as a table."""
    rows = [fleet_cells(row) for row in fleet_content(request)["rows"]]
    return mark_uncached(csv_response([list(COLUMNS), *rows], f"{request.project.slug}-fleet.csv"))
