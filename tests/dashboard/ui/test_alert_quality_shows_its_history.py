"""Alert quality by week: number of alerts with median times, and the burn-down of error budgets."""

from __future__ import annotations

from datetime import timedelta
from html import unescape

import pytest
from django.test import Client

from dashboard.alerts.alert_history import WEEKS, read_alert_history, sum_weeks
from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.fleet.selectors.versions.budget_burn_down import read_budget_days
from dashboard.projects.models import Project

PAGE = "/p/ranking/alerts/grades/"


def copy(alert: Alert, number: int, **given: object) -> None:
    one = Alert.objects.get(pk=alert.pk)
    one.pk, one.number, one.state = None, number, "resolved"
    for name, value in given.items():
        setattr(one, name, value)
    one.save(force_insert=True)


def test_each_alert_counts_in_its_week_with_its_times(alert: Alert, project: Project) -> None:
    now = clock.now()
    for number, (days, minutes) in enumerate([(1, 10), (2, 30), (20, 50), (100, 1)], 500):
        opened = now - timedelta(days=days)
        copy(
            alert, number, opened_at=opened, worst="watch",
            acknowledged_at=opened + timedelta(minutes=minutes), resolved_at=opened + timedelta(hours=2),
        )  # fmt: skip
    weeks = read_alert_history(project=project)
    assert len(weeks) == WEEKS
    assert [(week.roll_back, week.watch) for week in (weeks[-1], weeks[-3])] == [(1, 2), (0, 1)]
    detect, acknowledge, resolve = weeks[-1].medians()
    assert (acknowledge.seconds, acknowledge.count) == (20 * 60, 2)
    assert (resolve.seconds, resolve.count) == (7200, 2) and detect.count == 3
    total = sum_weeks(weeks)
    assert (total.alerts, total.medians()[1].count) == (4, 3), "older alerts are not counted"


def test_the_page_shows_weeks_medians_and_numbers(
    signed_in: Client, alert: Alert, project: Project
) -> None:
    Alert.objects.update(acknowledged_at=alert.opened_at + timedelta(minutes=7))
    html = unescape(signed_in.get(PAGE).content.decode()).replace("\xa0", " ")
    history = html.split('id="hi"')[1].split("</section>")[0]
    assert "1 ROLL BACK, 0 WATCH" in history and "7 min" in history and "n = 1" in history
    assert "90 days" in history


def test_a_project_without_alerts_has_no_weeks(signed_in: Client, project: Project) -> None:
    html = signed_in.get(PAGE).content.decode()
    assert "No alert opened in the last 90 days." in html and "<tfoot>" not in html


@pytest.mark.parametrize(("budget", "left"), [(0.99, "overspent"), (0.9, "left")])
def test_a_model_with_a_budget_shows_what_remains(
    signed_in: Client, alert: Alert, project: Project, budget: float, left: str
) -> None:
    assert 'id="bd"' not in signed_in.get(PAGE).content.decode()
    WatchedModel.objects.filter(name="ranker").update(served_budget=budget)
    models, more = read_budget_days(project=project)
    (one,), spent = models, sum(models[0].missed.values()) / models[0].allowed
    assert (one.name, more, spent > 1) == ("ranker", 0, left == "overspent")
    html = signed_in.get(PAGE).content.decode()
    card = html.split('id="bd"')[1].split("</section>")[0]
    assert "ranker" in card and ("over" in card.split("figcaption")[1]) == (left == "overspent")
    assert card.count('class="l s2"') == 1
