"""Old address of a version, which leads to its tab, and the version as JSON and CSV."""

from __future__ import annotations

from django.http import Http404, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.pages.compiles.queries import read_compiles_data
from dashboard.ui.pages.model.lookup import parse_whole_number
from dashboard.ui.pages.version.exports import (
    VersionExport,
    start_table,
    starts_of,
    version_json,
    version_table,
)
from dashboard.ui.pages.version.status import VersionStatus, read_version_status

STARTUP = ("instance", "replicas", "at_once")
"""Parameters that belong to the Startup tab."""


@require_safe
@project_page()
def version(request: ProjectRequest, model_id: int, version_id: int) -> HttpResponse:
    """Leads to the Compiles tab of this version, or to its Startup tab if a parameter belongs to
    it."""
    status = _status(request, model_id, version_id)
    query: QueryDict = request.GET.copy()
    query["version"], query["env"] = str(version_id), status.deployment.environment
    name = "model_startup" if any(one in query for one in STARTUP) else "model_compiles"
    return redirect(f"{reverse(name, args=[request.project.slug, model_id])}?{query.urlencode()}")


@require_safe
@project_page()
def version_as_json(request: ProjectRequest, model_id: int, version_id: int) -> HttpResponse:
    """The numbers of a version as data."""
    return JsonResponse(version_json(_export(request, model_id, version_id)))


@require_safe
@project_page()
def version_as_csv(request: ProjectRequest, model_id: int, version_id: int) -> HttpResponse:
    """One row per compilation, or one row per phase of the drawn start."""
    data = _export(request, model_id, version_id).data.version
    if request.GET.get("chart") == "start":
        wanted = parse_whole_number(request.GET.get("instance"))
        return csv_response(
            start_table(starts_of(data, wanted)), f"version-{version_id}-cold-start.csv"
        )
    return csv_response(version_table(data), f"version-{version_id}-compilations.csv")


def _export(request: ProjectRequest, model_id: int, version_id: int) -> VersionExport:
    status = _status(request, model_id, version_id)
    return VersionExport(
        status,
        read_compiles_data(
            model=status.deployment.model,
            deployment=status.deployment,
            baseline=status.baseline,
        ),
        parse_whole_number(request.GET.get("replicas")),
        parse_whole_number(request.GET.get("at_once")),
    )


def _status(request: ProjectRequest, model_id: int, version_id: int) -> VersionStatus:
    found = read_version_status(
        project_id=request.project.pk,
        model_id=model_id,
        version_id=version_id,
        environment=request.GET.get("env", ""),
    )
    if found is None:
        raise Http404("Version not found in this project, or it never ran.")
    return found
