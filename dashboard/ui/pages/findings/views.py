"""The findings of a project, and one finding; the same rows as JSON and CSV."""

from __future__ import annotations

from dataclasses import asdict

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.common import clock
from dashboard.fleet.selectors.compilations.cache_miss_costs import read_miss_costs
from dashboard.fleet.selectors.findings.finding_days import count_findings_by_day
from dashboard.fleet.selectors.findings.finding_detail import FindingDetail, read_finding_detail
from dashboard.fleet.selectors.findings.finding_list import (
    FindingList,
    read_finding_list,
)
from dashboard.fleet.selectors.versions.fleet_page import list_environments
from dashboard.ui.charts.findings_by_day import build_findings_by_day, days_table
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.paging import read_page_number
from dashboard.ui.pages.compiles.cache_misses import sum_factors
from dashboard.ui.pages.findings.detail import finding_page
from dashboard.ui.pages.findings.list import HEAD, tabulate_findings
from dashboard.ui.pages.findings.table import PAGE_SIZE, build_table_context, read_filter

MAX_EXPORTED = 10_000


@require_safe
@project_page()
def findings(request: ProjectRequest) -> HttpResponse:
    """The list."""
    query, wanted = request.GET, read_filter(request.GET)
    found = read_finding_list(
        project_id=request.project.pk, wanted=wanted, page=read_page_number(query), size=PAGE_SIZE
    )
    return render(
        request,
        "ui/findings/list.html",
        build_table_context(query, wanted, found)
        | {
            "models": found.models,
            "versions": found.versions,
            "environments": list_environments(project_id=request.project.pk),
            "days": build_findings_by_day(
                count_findings_by_day(project_id=request.project.pk, wanted=wanted)
            )
            if found.total or wanted.state
            else None,
            "filtered": any(
                (
                    wanted.model_id,
                    wanted.version_id,
                    wanted.kind,
                    wanted.state,
                    wanted.text,
                    wanted.environment,
                )
            ),
            "factors": sum_factors(read_miss_costs(project_id=request.project.pk, now=clock.now()))
            if wanted.kind == "cache_miss"
            else [],
        },
    )


@require_safe
@project_page()
def findings_json(request: ProjectRequest) -> HttpResponse:
    """All findings that match the filter, at most ten thousand."""
    found = _all(request)
    return JsonResponse({"total": found.total, "findings": [asdict(row) for row in found.rows]})


@require_safe
@project_page()
def findings_csv(request: ProjectRequest) -> HttpResponse:
    """The findings table, or the data of the chart over time."""
    if request.GET.get("chart") == "days":
        days = count_findings_by_day(project_id=request.project.pk, wanted=read_filter(request.GET))
        return csv_response(days_table(days), f"{request.project.slug}-findings-by-day.csv")
    return csv_response(
        [HEAD, *tabulate_findings(_all(request).rows)], f"{request.project.slug}-findings.csv"
    )


@require_safe
@project_page()
def finding(request: ProjectRequest, finding_id: int) -> HttpResponse:
    """One finding: affected versions and instances, remedies, and versions without it."""
    page = finding_page(_detail(request, finding_id))
    return render(
        request,
        "ui/findings/page.html",
        {"page": page, "detail": page.detail, "finding": page.detail.finding},
    )


@require_safe
@project_page()
def finding_json(request: ProjectRequest, finding_id: int) -> HttpResponse:
    """Data of the finding's page."""
    page = finding_page(_detail(request, finding_id))
    detail, one = page.detail, page.detail.finding
    return JsonResponse(
        {
            "id": one.pk,
            "kind": one.kind,
            "text": one.text,
            "place": one.where,
            "model": one.model.name,
            "first_seen_at": one.first_seen_at,
            "last_seen_at": one.last_seen_at,
            "count": one.count,
            "values": list(page.varies.values),
            "distinct": one.distinct,
            "pattern": one.pattern,
            "varies": page.varies.all_words,
            "hint": page.hint,
            "pattern_hint": page.varies.remedy,
            "about": page.page,
            "states": [
                {
                    "environment": life.environment,
                    "state": life.state,
                    "since_minute": life.since_minute,
                }
                for life in detail.lives
            ],
            "versions": [asdict(seen) for seen in detail.versions],
            "instances": [asdict(seen) | {"name": seen.name} for seen in detail.instances],
            "way_out": asdict(page.way) if page.way else None,
            "without": [asdict(ran) | {"proof": ran.proof} for ran in page.without],
        }
    )


@require_safe
@project_page()
def finding_csv(request: ProjectRequest, finding_id: int) -> HttpResponse:
    """Versions of the finding by environment."""
    detail = _detail(request, finding_id)
    rows = [
        [
            seen.version,
            seen.environment,
            seen.count,
            seen.instances,
            seen.seconds,
            seen.first_seen_at.isoformat(),
            seen.last_seen_at.isoformat(),
        ]
        for seen in detail.versions
    ]
    return csv_response(
        [
            ["version", "environment", "times", "instances", "seconds", "first seen", "last seen"],
            *rows,
        ],
        f"finding-{finding_id}.csv",
    )


def _all(request: ProjectRequest) -> FindingList:
    return read_finding_list(
        project_id=request.project.pk, wanted=read_filter(request.GET), page=1, size=MAX_EXPORTED
    )


def _detail(request: ProjectRequest, finding_id: int) -> FindingDetail:
    found = read_finding_detail(project_id=request.project.pk, finding_id=finding_id)
    if found is None:
        raise Http404("Finding not found in this project.")
    return found
