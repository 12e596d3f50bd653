"""One instance of a model: its state, its environment, and a comparison with its version; the same
as JSON and CSV."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from dashboard.fleet.models import Instance
from dashboard.fleet.selectors.instances.instance_detail import (
    RegionVsOthers,
    read_frame_history,
    read_instance_history,
    read_regions_vs_others,
)
from dashboard.fleet.selectors.instances.instance_list import find_instance
from dashboard.fleet.selectors.instances.instances import read_configured_instances
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.pages.compiles.compilations import list_compilations
from dashboard.ui.pages.instances.detail import InstancePage, instance_page
from dashboard.ui.pages.instances.list import serialize_ending
from dashboard.ui.pages.model.header import build_model_header
from dashboard.ui.pages.model.verdict_queries import read_model_verdicts


@require_safe
@project_page()
def instance(request: ProjectRequest, model_id: int, instance_id: str) -> HttpResponse:
    """The page, or the part of it that scripts poll."""
    page = _page(_instance(request, model_id, instance_id))
    model = page.instance.model
    context: dict[str, Any] = {
        "project": request.project,
        "model": model,
        "page": page,
        "instance": page.instance,
    }
    part = render_to_string("ui/instances/one_live.html", context, request)
    if request.headers.get("HX-Request"):
        return fragment_response(request, part)
    standing = read_model_verdicts(model=model, environment=page.instance.environment)
    context["polled"] = True
    context["header"] = build_model_header(
        request, model, active="instances", standing=standing, spans=()
    )
    return mark_uncached(
        render(
            request, "ui/instances/one.html", context | {"part": part, "etag": fragment_etag(part)}
        )
    )


@require_safe
@project_page()
def instance_json(request: ProjectRequest, model_id: int, instance_id: str) -> HttpResponse:
    """Content of the page as data."""
    page = _page(_instance(request, model_id, instance_id))
    one = page.instance
    return JsonResponse(
        {
            "id": one.instance_id,
            "version": one.version.name,
            "environment": one.environment,
            "name": page.told.name,
            "label": one.label,
            "role": one.role,
            "pid": one.pid,
            "state": page.state.value,
            **serialize_ending(one),
            "why": page.sentence,
            "more": page.more,
            "last_seen_at": one.last_seen_at,
            "started_at": one.started_at,
            "compiling": {
                "frame": one.compiling_frame,
                "seconds": one.compiling_for,
                "usual": one.compiling_usual,
            },
            "identity": one.identity,
            "components": one.components,
            "capabilities": one.capabilities,
            "losses": page.losses,
            "regions": [asdict(line) for line in page.regions],
            "findings": [asdict(line) for line in page.findings],
        }
    )


@require_safe
@project_page()
def instance_csv(request: ProjectRequest, model_id: int, instance_id: str) -> HttpResponse:
    """Regions of the instance next to the median of the other instances of its version."""
    found = _instance(request, model_id, instance_id)
    head = [
        "region",
        "bucket",
        "stratum",
        "calls",
        "p50 (s)",
        "p50 below (s)",
        "p50 of others (s)",
        "p99 (s)",
        "p99 below (s)",
        "p99 of others (s)",
        "mean where only a bound is known (s)",
        "eager",
        "eager of others",
        "why eager",
    ]
    rows = [
        (*_place(one), one.own.calls, *_times(one), one.own.eager, one.eager, one.own.why.words)
        for one in read_regions_vs_others(found)
    ]
    return csv_response([head, *rows], f"instance-{instance_id}.csv")


def _times(one: RegionVsOthers) -> tuple[float | None, ...]:
    """Both quantiles of the instance and of the others, each with its bound if the value is
    unknown; then the mean."""
    own, known = one.own, one.own.p50_below or one.own.p99_below
    p50_below, p99_below = (
        found.bound if found else None for found in (own.p50_below, own.p99_below)
    )
    return own.p50, p50_below, one.p50, own.p99, p99_below, one.p99, known.mean if known else None


def _place(one: RegionVsOthers) -> tuple[str, str, str]:
    return one.series.region, one.series.bucket, one.series.stratum


def _instance(request: ProjectRequest, model_id: int, instance_id: str) -> Instance:
    found = find_instance(project_id=request.project.pk, model_id=model_id, instance_id=instance_id)
    if found is None:
        raise Http404("Instance not found for this model.")
    return found


def _page(found: Instance) -> InstancePage:
    """Reads the page in a fixed number of queries."""
    project, ids = found.project_id, [found.version_id]
    _, configurations = read_configured_instances(
        project_id=project, version_ids=ids, environment=found.environment
    )
    events, findings = read_instance_history(found)
    return instance_page(
        found,
        missing=getattr(found, "missing", None) or 0,
        regions=read_regions_vs_others(found),
        findings=findings,
        history=read_frame_history(found),
        configurations=configurations,
        compilations=list_compilations(events, {found.pk: ("", found.started_at)}),
    )
