"""The Versions tab of a model: one row per version, and the choice of the baseline."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.common import clock
from dashboard.fleet.retention import find_first_kept_minute
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.paging import paginate, read_page_number
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.http.sortable_table import Order
from dashboard.ui.http.time_range import replace_query
from dashboard.ui.pages.model.header import Choice, build_model_header
from dashboard.ui.pages.model.lookup import model_or_404
from dashboard.ui.pages.model.verdict_queries import MAX_VERSIONS_LISTED
from dashboard.ui.pages.model.versions_data import build_version_rows, read_versions_data
from dashboard.ui.pages.model.versions_queries import list_versions
from dashboard.ui.pages.model.versions_table import sort_versions, versions_columns


@require_safe
@project_page()
def versions(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The tab."""
    query, model = request.GET, model_or_404(request, model_id)
    header = build_model_header(request, model, active="versions")
    standing = header.standing
    order = Order.read(query, versions_columns(whole=True), "usual", name="vsort")
    listed = list_versions(
        model=model, standing=standing, order=order, page=read_page_number(query, name="vpage")
    )
    data = read_versions_data(
        model=model,
        standing=standing,
        window=header.range.bins(
            minutes_from=find_first_kept_minute(project=request.project, now=clock.unix())
        ),
        region=query.get("region", ""),
        listed=listed.ids,
    )
    rows = build_version_rows(data)
    whole = listed.total <= MAX_VERSIONS_LISTED
    regions = [
        Choice(name, replace_query(query, region=name), name == data.region)
        for name in data.regions
        if len(data.regions) > 1
    ]
    context = {
        "model": model,
        "header": replace(header, regions=regions),
        "standing": standing,
        "versions": sort_versions(rows, order) if listed.whole else rows,
        "window": data.window,
        "env_query": urlencode({"env": standing.environment}),
        "heads": order.heads(query, versions_columns(whole=whole), name="vsort", page="vpage"),
        "paged": paginate(query, total=listed.total, size=MAX_VERSIONS_LISTED, name="vpage"),
        "active": header.counts.choices.active,
    }
    return mark_uncached(render(request, "ui/model/versions.html", context))
