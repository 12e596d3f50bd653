"""The Compiles tab of a model: compilations, caches and numerics of one version."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.fleet.selectors.versions.version_series import Span
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.time_range import SINCE_DEPLOYMENT
from dashboard.ui.pages.compiles.presenter import compiles_tab
from dashboard.ui.pages.compiles.queries import read_compiles_data
from dashboard.ui.pages.model.header import ModelHeader, build_model_header
from dashboard.ui.pages.model.lookup import model_or_404
from dashboard.ui.pages.version.queries import VersionName

LEAD_MINUTES = 60
"""Compilations of a start precede the first minute with data."""


@require_safe
@project_page()
def compiles(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The tab; without a deployment, only its header."""
    model = model_or_404(request, model_id)
    header = build_model_header(request, model, active="compiles", usual=SINCE_DEPLOYMENT)
    context = {"header": header, "model": model}
    judged, baseline = header.standing.judged, header.standing.baseline
    if judged is None:
        return render(request, "ui/compiles/page.html", context)
    data = read_compiles_data(
        model=model,
        deployment=judged,
        baseline=VersionName(baseline.pk, baseline.name) if baseline else None,
        span=Span(header.range.first, header.range.last),
        base_span=_own_span(header) if header.range.key == SINCE_DEPLOYMENT else None,
    )
    tab = compiles_tab(data, chosen=header.range, query=request.GET)
    return render(
        request,
        "ui/compiles/page.html",
        context
        | {
            "tab": tab,
            "data": data.version,
            "version": data.version.version,
            "baseline": data.version.baseline,
            "query": request.GET.urlencode(),
        },
    )


def _own_span(header: ModelHeader) -> Span | None:
    """The time since the deployment of the baseline."""
    baseline = header.standing.baseline
    deployment = header.standing.latest.get(baseline.pk) if baseline else None
    if deployment is None:
        return None
    return Span(deployment.started_minute - LEAD_MINUTES, header.range.last)
