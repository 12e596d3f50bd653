"""Compile cost: a part of the Fleet page that loads when it becomes visible, a page, and files."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from dashboard.common import clock
from dashboard.common.client_address import find_client_address
from dashboard.common.field_error import FieldError
from dashboard.fleet.gpu_price import gpu_price_set, read_gpu_price
from dashboard.projects.models import Role
from dashboard.projects.selectors import role_includes
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.csv_export import csv_response
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.compile_cost.presenter import build_cost_view, serialize_costs
from dashboard.ui.pages.compile_cost.queries import DAYS, LATEST_DAYS, FleetCost, read_fleet_cost

COLUMNS = (
    *("model", "day", "compiling_gpu_seconds", "eager_gpu_seconds", "cache_misses_gpu_seconds"),
    "price_per_gpu_hour",
)


@require_safe
@project_page()
def compile_cost(request: ProjectRequest) -> HttpResponse:
    """GPU-hours of compilations, eager calls and cache misses, by day and by model."""
    name = "part.html" if request.headers.get("HX-Request") else "page.html"
    price = read_gpu_price(request.project.settings)
    shown = {
        "cost": build_cost_view(_read(request), price),
        "price": price,
        "days": DAYS,
        "latest_days": LATEST_DAYS,
        "environment": request.GET.get("env", ""),
        "query": request.GET.urlencode(),
        "may_set_price": role_includes(request.membership.role, Role.ADMIN),
    }
    return mark_uncached(render(request, f"ui/compile_cost/{name}", shown))


@require_safe
@project_page()
def compile_cost_json(request: ProjectRequest) -> HttpResponse:
    """The costs as data."""
    price = read_gpu_price(request.project.settings)
    return mark_uncached(JsonResponse({"rows": serialize_costs(_read(request), price)}))


@require_safe
@project_page()
def compile_cost_csv(request: ProjectRequest) -> HttpResponse:
    """One row per model and day."""
    price = read_gpu_price(request.project.settings)
    rows = [list(row.values()) for row in serialize_costs(_read(request), price)]
    name = f"{request.project.slug}-compile-cost.csv"
    return mark_uncached(csv_response([list(COLUMNS), *rows], name))


@require_POST
@project_page(Role.ADMIN)
def compile_cost_price(request: ProjectRequest) -> HttpResponse:
    """Sets or removes the price of a GPU-hour."""
    text = request.POST.get("price", "").strip()
    try:
        price = float(text) if text else None
    except ValueError:
        price = float("nan")
    try:
        gpu_price_set(
            project=request.project,
            price=price,
            actor=request.user,
            address=find_client_address(request.META),
        )
    except FieldError as error:
        messages.error(request, error.sentence)
    return redirect("compile_cost", request.project.slug)


def _read(request: ProjectRequest) -> FleetCost:
    return read_fleet_cost(
        project_id=request.project.pk,
        environment=request.GET.get("env", ""),
        now=clock.now(),
    )
