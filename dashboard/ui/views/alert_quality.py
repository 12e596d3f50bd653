"""The page that says how good the alerts were."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.alerts.alert_quality import DAYS, ENOUGH, grades_of
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import uncached
from dashboard.ui.pages.alert_quality import became_rows, grade_rows, interval_said, share_said


@require_safe
@project_page()
def grades(request: ProjectRequest) -> HttpResponse:
    """Precision and recall of the last 90 days, with every count they are made of."""
    found = grades_of(project=request.project)
    context = {
        "project": request.project,
        "days": DAYS,
        "enough": ENOUGH,
        "rows": grade_rows(found),
        "became": became_rows(found),
        "roll_backs": found.roll_backs,
        "recall": share_said(found.roll_backs.recall),
        "recall_interval": interval_said(found.roll_backs.recall),
        "simulated": found.simulated,
    }
    return uncached(render(request, "ui/alerts/grades.html", context))
