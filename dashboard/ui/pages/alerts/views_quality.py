"""The Alert quality page."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.alerts.alert_history import read_alert_history
from dashboard.alerts.alert_quality import MIN_GRADED_ALERTS, PERIOD_DAYS, read_alert_quality
from dashboard.alerts.deployment_quality import read_deployment_quality
from dashboard.fleet.selectors.versions.budget_burn_down import BURN_DAYS, read_budget_days
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.alerts.deployment_quality import MODELS_SHOWN, build_deployment_rows
from dashboard.ui.pages.alerts.history import build_burn_downs, build_history
from dashboard.ui.pages.alerts.quality import (
    build_outcome_rows,
    build_verdict_rows,
    format_interval,
    format_share,
)


@require_safe
@project_page()
def alert_quality(request: ProjectRequest) -> HttpResponse:
    """History, error budgets, precision, recall, and false verdicts per deployment, with all
    counts."""
    found = read_alert_quality(project=request.project)
    quality = read_deployment_quality(project=request.project)
    history, total = build_history(read_alert_history(project=request.project))
    budgets, more_budgets = read_budget_days(project=request.project)
    context = {
        "project": request.project,
        "days": PERIOD_DAYS,
        "history": history,
        "history_total": total,
        "burn_downs": build_burn_downs(budgets),
        "burn_days": BURN_DAYS,
        "more_budgets": more_budgets,
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
