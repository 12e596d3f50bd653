"""The rank board: the ranks of a job side by side; the same as JSON and CSV."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from dashboard.fleet.models import WatchedModel
from dashboard.fleet.selectors.jobs import list_job_ranks, list_jobs, read_rank_compile_events
from dashboard.fleet.selectors.versions.versions import list_model_deployments
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.paging import paginate
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.http.time_range import replace_query
from dashboard.ui.pages.model.header import build_model_header
from dashboard.ui.pages.model.lookup import model_or_404
from dashboard.ui.pages.ranks.presenter import build_rank_table

PAGE_SIZE = 64
"""Number of ranks on a page."""
CSV_HEADER = [
    "rank",
    "instance",
    "host",
    "stage",
    "state",
    "first compilations",
    "recompilations",
    "newest id",
    "caches",
    "eager",
    "compiles now",
    "node",
]


@require_safe
@project_page()
def ranks(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The board of the job from the URL, else of the job with the latest report; or the part of the
    board that scripts poll."""
    model = model_or_404(request, model_id)
    context = _context(request, model)
    part = render_to_string("ui/ranks/live.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    context["polled"] = True
    context["header"] = build_model_header(request, model, active="ranks", spans=())
    return mark_uncached(
        render(
            request,
            "ui/ranks/page.html",
            context | {"part": part, "etag": fragment_etag(part)},
        )
    )


@require_safe
@project_page()
def ranks_json(request: ProjectRequest, model_id: int) -> HttpResponse:
    """The board as data."""
    context = _context(request, model_or_404(request, model_id))
    return JsonResponse({"job": context["job"], **asdict(context["board"])})


@require_safe
@project_page()
def ranks_csv(request: ProjectRequest, model_id: int) -> HttpResponse:
    """One row per rank."""
    board = _context(request, model_or_404(request, model_id))["board"]
    rows = [
        (
            r.rank,
            r.instance_id,
            r.host,
            r.stage,
            r.state.value,
            r.first,
            r.again,
            r.newest,
            r.pattern,
            r.eager,
            r.now,
            r.node,
        )
        for r in board.rows
    ]
    return csv_response([CSV_HEADER, *rows], f"model-{model_id}-ranks.csv")


def _context(request: ProjectRequest, model: WatchedModel) -> dict[str, Any]:
    """Reads the board in four queries, independent of the size of the job."""
    query = request.GET
    environments = sorted(
        {
            one.environment
            for one in list_model_deployments(project_id=model.project_id, model_id=model.pk)
        }
    )
    asked = query.get("env", "")
    environment = asked if asked in environments else next(iter(environments), "")
    jobs = list_jobs(project_id=model.project_id, model_id=model.pk, environment=environment)
    job = query.get("job", "") or next((one.name for one in jobs), "")
    instances = (
        list_job_ranks(
            project_id=model.project_id, model_id=model.pk, environment=environment, job=job
        )
        if job
        else []
    )
    board = build_rank_table(
        instances, read_rank_compile_events(project_id=model.project_id, instances=instances)
    )
    page = paginate(query, total=len(board.rows), size=PAGE_SIZE)
    return {
        "project": request.project,
        "model": model,
        "environment": environment,
        "environments": [
            (name, replace_query(query, env=name, job="", page=""), name == environment)
            for name in environments
        ],
        "jobs": [
            (one, replace_query(query, job=one.name, page=""), one.name == job) for one in jobs
        ],
        "job": job,
        "version": instances[0].version.name if instances else "",
        "board": board,
        "page": page,
        "rows": board.urgent[page.first : page.first + PAGE_SIZE],
        "query": query.urlencode(),
    }
