"""Search: a results page that works without scripts, and the same results as a list below the
search field."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_response, mark_uncached
from dashboard.ui.pages.search.queries import (
    MAX_RESULTS_PER_KIND,
    normalize_search_text,
    project_search,
)
from dashboard.ui.pages.search.results import HitGroup, SearchHit, build_help_group, build_hits

PAGE_RESULTS_PER_KIND = 50


@require_safe
@project_page()
def search(request: ProjectRequest) -> HttpResponse:
    """Results of the project for these words."""
    text = normalize_search_text(request.GET.get("q", ""))
    part = bool(request.headers.get("HX-Request"))
    found = project_search(
        project_id=request.project.pk,
        text=text,
        each=MAX_RESULTS_PER_KIND if part else PAGE_RESULTS_PER_KIND,
    )
    of_project = build_hits(request.project.slug, found)
    of_help = build_help_group(text)
    groups = of_project + ([of_help] if of_help.hits else [])
    context: dict[str, Any] = {
        "project": request.project,
        "q": text,
        "groups": groups,
        "count": found.count,
        "part": part,
    }
    if part:
        return fragment_response(request, render_to_string("ui/search/list.html", context, request))
    only = _find_only_hit(of_project or groups)
    if only and "go" in request.GET:
        return HttpResponseRedirect(only.url)
    return mark_uncached(
        render(
            request,
            "ui/search/page.html",
            context | {"here": reverse("search", args=[request.project.slug])},
        )
    )


def _find_only_hit(groups: list[HitGroup]) -> SearchHit | None:
    hits = [hit for group in groups for hit in group.hits]
    return hits[0] if len(hits) == 1 else None
