"""Settings > Detection: regression thresholds, confidence, and learned variance of the fleet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Role
from dashboard.regressions.judge.settings_overrides import Value
from dashboard.regressions.judging_settings import detection_settings_set
from dashboard.regressions.placebo_preview import preview_request
from dashboard.regressions.settings_backtest import backtest_request
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_response, mark_uncached
from dashboard.ui.pages.model.views import model_or_404, parse_whole_number
from dashboard.ui.pages.settings.detection.backtest import build_backtest_card
from dashboard.ui.pages.settings.detection.measured_settings import build_measured_card
from dashboard.ui.pages.settings.detection.presenter import (
    DetectionPage,
    SettingsInput,
    build_detection_page,
    read_settings_input,
)
from dashboard.ui.pages.settings.detection.queries import DetectionData, read_detection_data


@require_safe
@project_page()
def detection(request: ProjectRequest) -> HttpResponse:
    """All settings with their effect; `?model=` shows those of one model."""
    return _render(
        request,
        build_detection_page(
            read_detection_data(
                project=request.project, model=_model(request, request.GET.get("model"))
            )
        ),
    )


@require_POST
@project_page(Role.ADMIN)
def detection_save(request: ProjectRequest) -> HttpResponse:
    """Saves all fields or none. Errors are shown next to their field."""
    model = _model(request, request.POST.get("model"))
    facts = read_detection_data(project=request.project, model=model)
    given = read_settings_input(request.POST, facts)
    if given.errors:
        return _render_refusal(request, build_detection_page(facts, given), given)
    changed = detection_settings_set(
        project=request.project,
        model=model,
        values=given.values,
        actor=request.user,
        address=request.META.get("REMOTE_ADDR"),
    )
    text = (
        "Saved. The change applies to live versions within seconds."
        if changed
        else "No changes to save."
    )
    messages.success(request, text)
    return redirect(
        reverse("judging", args=[request.project.slug]) + (f"?model={model.pk}" if model else "")
    )


@require_POST
@project_page(Role.ADMIN)
def detection_backtest(request: ProjectRequest) -> HttpResponse:
    """Requests the verdicts of the last days with the values of the fields."""

    def start(facts: DetectionData, values: dict[str, Value], name: str) -> DetectionData:
        requested = backtest_request(
            project=facts.project, model=facts.model, values=values, actor_name=name
        )
        return replace(facts, backtest=requested)

    return _try_settings(request, start)


@require_safe
@project_page()
def detection_backtest_state(request: ProjectRequest) -> HttpResponse:
    """The card of the newest backtest, which the page polls while the backtest is computed."""
    facts = read_detection_data(
        project=request.project, model=_model(request, request.GET.get("model"))
    )
    context = {"project": request.project, "backtest": build_backtest_card(facts)}
    return fragment_response(
        request, render_to_string("ui/settings/detection/backtest.html", context)
    )


@require_POST
@project_page(Role.ADMIN)
def detection_measure(request: ProjectRequest) -> HttpResponse:
    """Requests the error rates and the detectable change of the values of the fields."""

    def start(facts: DetectionData, values: dict[str, Value], name: str) -> DetectionData:
        requested = preview_request(
            project=facts.project, model=facts.model, values=values, actor_name=name
        )
        return replace(facts, preview=requested)

    return _try_settings(request, start)


@require_safe
@project_page()
def detection_measured(request: ProjectRequest) -> HttpResponse:
    """The card of the newest preview, which the page polls while the preview is computed."""
    facts = read_detection_data(
        project=request.project, model=_model(request, request.GET.get("model"))
    )
    context = {"project": request.project, "measured": build_measured_card(facts)}
    return fragment_response(
        request, render_to_string("ui/settings/detection/measured.html", context)
    )


def _try_settings(
    request: ProjectRequest,
    start: Callable[[DetectionData, dict[str, Value], str], DetectionData],
) -> HttpResponse:
    """Starts work with the values of the fields. Saves no setting, so the page keeps the values."""
    model = _model(request, request.POST.get("model"))
    facts = read_detection_data(project=request.project, model=model)
    given = read_settings_input(request.POST, facts)
    if given.errors:
        return _render_refusal(request, build_detection_page(facts, given), given)
    requested = start(facts, given.values, request.user.get_username())
    return _render(request, build_detection_page(requested, given))


def _render_refusal(
    request: ProjectRequest, page: DetectionPage, given: SettingsInput
) -> HttpResponse:
    messages.error(request, f"Not saved. {next(iter(given.errors.values()))}")
    return _render(request, page, status=400)


def _render(
    request: ProjectRequest,
    page: DetectionPage,
    *,
    status: int = 200,
) -> HttpResponse:
    context = {
        "project": request.project,
        "page": page,
        "facts": page.facts,
        "model": page.facts.model,
        "backtest": build_backtest_card(page.facts),
        "measured": build_measured_card(page.facts),
    }
    return mark_uncached(render(request, "ui/settings/detection/page.html", context, status=status))


def _model(request: ProjectRequest, told: str | None) -> WatchedModel | None:
    model_id = parse_whole_number(told)
    return model_or_404(request, model_id) if model_id is not None else None
