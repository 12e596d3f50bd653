"""The Alert quality page."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.alerts.alert_quality import MIN_GRADED_ALERTS, PERIOD_DAYS, read_alert_quality
from dashboard.alerts.deployment_quality import read_deployment_quality
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.alerts.deployment_quality import MODELS_SHOWN, build_deployment_rows
from dashboard.ui.pages.alerts.quality import (
    build_outcome_rows,
    build_verdict_rows,
    format_interval,
    format_share,
)


@require_safe
@project_page()
def alert_quality(request: ProjectRequest) -> HttpResponse:
    """Precision, recall, and false verdicts per deployment of the last 90 days, with all counts."""
    found = read_alert_quality(project=request.project)
    quality = read_deployment_quality(project=request.project)
    context = {
        "project": request.project,
        "days": PERIOD_DAYS,
        "enough": MIN_GRADED_ALERTS,
        "rows": build_verdict_rows(found),
        "became": build_outcome_rows(found),
        "roll_backs": found.roll_backs,
        "recall": format_share(found.roll_backs.recall),
        "recall_interval": format_interval(found.roll_backs.recall),
        "simulated": found.simulated,
        "judged": quality[0].deployments,
        "labelled": any(counts.false_discovery.whole for counts in quality[0].severities),
        "deployment_rows": [build_deployment_rows([one]) for one in quality[: 1 + MODELS_SHOWN]],
        "more_models": max(0, len(quality) - 1 - MODELS_SHOWN),
    }
    return mark_uncached(render(request, "ui/alerts/grades.html", context))
