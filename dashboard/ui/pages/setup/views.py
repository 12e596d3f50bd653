"""The Setup page: checklist, key, snippets, first report and kill switch."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from dashboard.projects.command_key import list_public_keys
from dashboard.projects.models import Role
from dashboard.projects.services import key_create
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.pages.setup.checklist import read_checklist
from dashboard.ui.pages.setup.queries import query_ingest_keys, read_arrival
from dashboard.ui.pages.setup.snippets import (
    format_command_environment,
    format_environment,
    snippets,
)

INGEST_KIND = "ing"


@require_safe
@project_page()
def setup(request: ProjectRequest) -> HttpResponse:
    """All steps of a new job, up to its first report."""
    return _page(request)


@require_safe
@project_page()
def setup_arrival(request: ProjectRequest) -> HttpResponse:
    """State of the first report, which the page polls."""
    return fragment_response(request, _arrival(request))


@require_safe
@project_page()
def setup_keys(request: ProjectRequest) -> HttpResponse:
    """The keys with their last use. The page polls them before and after the first use."""
    return fragment_response(request, _keys(request))


@require_POST
@project_page(Role.ADMIN, sure=True)
def key_make(request: ProjectRequest) -> HttpResponse:
    """Creates a key that sends reports and shows it only once, in the response, because it is not
    stored."""
    name, address = request.POST.get("name", "").strip()[:100], request.META.get("REMOTE_ADDR")
    _, text = key_create(
        project=request.project, kind=INGEST_KIND, name=name, actor=request.user, address=address
    )
    return setup_answer(request, made=text)


def setup_answer(request: ProjectRequest, **shown: Any) -> HttpResponse:
    """The page with a secret that is shown only once, in the response."""
    response = _page(request, **shown)
    response["Cache-Control"] = "no-store"
    return response


def _page(
    request: ProjectRequest,
    *,
    made: str = "",
    command_key: str = "",
) -> HttpResponse:
    heard, keys = _arrival(request), _keys(request)
    public_key = next(iter(list_public_keys(request.project)), "")
    context: dict[str, Any] = {
        "project": request.project,
        "made": made,
        "command_key": command_key,
        "command_text": format_command_environment(public_key=public_key) if public_key else "",
        "keys": keys,
        "keys_etag": fragment_etag(keys),
        "any_key": "</tr>" in keys,
        "environment_text": format_environment(address=settings.BASE_URL, key=made),
        "snippets": snippets(address=settings.BASE_URL, key=made),
        "arrival": heard,
        "arrival_etag": fragment_etag(heard),
        "checklist": read_checklist(project=request.project),
    }
    return mark_uncached(render(request, "ui/setup/page.html", context))


def _arrival(request: ProjectRequest) -> str:
    return render_to_string(
        "ui/setup/arrival.html",
        {"heard": read_arrival(project=request.project), "project": request.project},
    )


def _keys(request: ProjectRequest) -> str:
    return render_to_string(
        "ui/setup/keys.html", {"keys": list(query_ingest_keys(project=request.project))}
    )
