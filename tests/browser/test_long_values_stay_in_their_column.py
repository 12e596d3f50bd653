"""Long values in the audit log, in names and in responses wrap inside their column: no column is
squeezed to a strip, and nothing overflows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.fleet.models import FindingLife
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Plan, charted, now_minute
from tests.dashboard.ui.charts_story import finding

LONG_NAME = "a.very.long.name.of.somebody.who@department.example.com"
NARROWEST = 90
"""Pixels below which a text cell is too narrow to read."""
WIDTHS = "cells => cells.map(cell => cell.getBoundingClientRect().width)"
FITS = "document.documentElement.scrollWidth <= window.innerWidth"


@pytest.mark.parametrize("width", [1280, 375])
def test_the_audit_log_and_the_changes_of_detection_settings(
    sign_in: Callable[[User], Page],
    live_server: LiveServer,
    user: User,
    project: Project,
    width: int,
) -> None:
    Project.objects.filter(pk=project.pk).update(name="L" * 100)
    after = {"note": "x y " * 60, "p50_smallest_effect": 0.03}
    for subject in ("m" * 200, "settings of all models"):
        audit_write(
            action="judging.set",
            subject=subject,
            project_id=project.pk,
            actor_name=LONG_NAME,
            after=after,
            address="2001:db8:85a3:8d3:1319:8a2e:370:7348",
        )
    page = sign_in(user)
    page.set_viewport_size({"width": width, "height": 800})
    for part in ("settings/judging/", "health/", "settings/audit/"):
        page.goto(f"{live_server.url}/p/{project.slug}/{part}")
        assert page.evaluate(FITS), f"{part} is wider than {width} px"
    assert min(page.locator(".audit td.any").evaluate_all(WIDTHS)) > NARROWEST


def test_the_state_of_a_finding_in_an_environment_with_a_long_name(
    sign_in: Callable[[User], Page], live_server: LiveServer, user: User, project: Project
) -> None:
    made = charted(project, Plan("1", start=5))
    seen = {"first_version": made.versions["1"], "last_version": made.versions["1"]}
    shown = finding(made, "graph_break", "Tensor.item()", "ranker/features.py:61", {"1": 1})
    for environment in ("production-eu-central-1", "staging"):
        FindingLife.objects.create(
            finding=shown,
            environment=environment,
            state="ongoing",
            since_minute=now_minute(),
            **seen,
        )
    page = sign_in(user)
    page.set_viewport_size({"width": 375, "height": 800})
    page.goto(f"{live_server.url}/p/{project.slug}/findings/")
    state = page.locator(".finds .state", has_text="ongoing in production-eu-central-1")
    right = "element => element.getBoundingClientRect().right"
    assert state.evaluate(right) <= page.locator("table.finds").evaluate(right) - 11
