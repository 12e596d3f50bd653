"""Saving and deleting a view of the Fleet page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.common.field_error import FieldError
from dashboard.projects.fleet_views import fleet_view_delete, fleet_view_save
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.pages.fleet.saved_views import canonical_query


@require_POST
@project_page()
def save_view(request: ProjectRequest) -> HttpResponse:
    """Saves the address under a name for this person; a view with the same name is replaced."""
    query = canonical_query(request.POST.get("query", "")[:2000])
    try:
        fleet_view_save(
            project=request.project,
            user=request.user,
            name=request.POST.get("name", ""),
            query=query,
        )
    except FieldError as error:
        messages.error(request, f"{error.field}: {error}")
    return redirect(f"{reverse('fleet', args=[request.project.slug])}?{query}")


@require_POST
@project_page()
def delete_view(request: ProjectRequest) -> HttpResponse:
    """Deletes a view of this person."""
    fleet_view_delete(project=request.project, user=request.user, name=request.POST.get("name", ""))
    return redirect("fleet", request.project.slug)
