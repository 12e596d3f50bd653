"""The search: a page of results without a script, and the same results as a list under the field with one."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_response, uncached
from dashboard.ui.pages.search_results import Hit, hits_of
from dashboard.ui.selectors.search import EACH, project_search, search_text

ON_THE_PAGE = 50


@require_safe
@project_page()
def search(request: ProjectRequest) -> HttpResponse:
    """What the project has under these words."""
    text = search_text(request.GET.get("q", ""))
    part = bool(request.headers.get("HX-Request"))
    found = project_search(project_id=request.project.pk, text=text, each=EACH if part else ON_THE_PAGE)
    groups = hits_of(request.project.slug, found)
    context: dict[str, Any] = {"project": request.project, "q": text, "groups": groups, "count": found.count, "part": part}
    if part:
        return fragment_response(request, render_to_string("ui/search/list.html", context, request))
    only = _only(groups)
    if only and "go" in request.GET:
        return HttpResponseRedirect(only.url)
    return uncached(render(request, "ui/search/page.html", context | {"here": reverse("search", args=[request.project.slug])}))


def _only(groups: list[Any]) -> Hit | None:
    hits = [hit for group in groups for hit in group.hits]
    return hits[0] if len(hits) == 1 else None
