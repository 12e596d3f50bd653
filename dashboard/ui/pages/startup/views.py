"""The Startup tab of a model: cold starts, forecasts and payback of one version."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.time_range import replace_query
from dashboard.ui.pages.model.header import build_model_header
from dashboard.ui.pages.model.lookup import model_or_404, parse_whole_number
from dashboard.ui.pages.startup.presenter import startup_tab
from dashboard.ui.pages.startup.views_budgets import describe_budgets
from dashboard.ui.pages.version.queries import VersionName, read_version_data


@require_safe
@project_page()
def startup(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The tab; without a deployment, only its header."""
    query, model = request.GET, model_or_404(request, model_id)
    header = build_model_header(request, model, active="startup", spans=())
    context = {"header": header, "model": model}
    judged, baseline = header.standing.judged, header.standing.baseline
    if judged is None:
        return render(request, "ui/startup/page.html", context)
    data, _ = read_version_data(
        model=model,
        deployment=judged,
        baseline=VersionName(baseline.pk, baseline.name) if baseline else None,
    )
    tab = startup_tab(
        data,
        query=query,
        deployments=header.standing.deployments,
        verdict=header.verdict,
        instance=parse_whole_number(query.get("instance")),
        replicas=parse_whole_number(query.get("replicas")),
        at_once=parse_whole_number(query.get("at_once")),
    )
    kept = ("env", "version", "baseline", "region", "clock", "range", "from", "to", "until")
    return render(
        request,
        "ui/startup/page.html",
        context
        | {
            "tab": tab,
            "data": data,
            "version": data.version,
            "baseline": data.baseline,
            "query": query.urlencode(),
            "kept": [(name, query[name]) for name in kept if query.get(name)],
            "choose": {
                row.process.id: replace_query(query, instance=str(row.process.id))
                for row in tab.listed
            },
            **describe_budgets(model),
        },
    )
