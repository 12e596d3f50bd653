"""Onset in charts: a band from the earliest to the latest minute, with the same interval as
text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.driving_chart import (
    ChartMark,
    ChartSeries,
    choose_span,
    draw_driving_chart,
)
from tests.dashboard.ui.charts_factory import Made, now_minute
from tests.dashboard.ui.charts_story import rolled_back

pytestmark = pytest.mark.django_db
NOTE = "shaded span: onset of the regression"


def set_onset(verdict: Verdict, onset: tuple[int, int] | None) -> None:
    for row in verdict.evidence["evidence"]:
        if row["drives"]:
            row["onset"] = onset
    verdict.save()


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


def marks(client: Client, made: Made) -> list[dict[str, Any]]:
    found = json.loads(client.get(f"{made.url()[:-1]}.json").content)
    return [mark for mark in found["marks"] if mark["until"]]


def test_the_model_page_has_a_band_and_its_text(signed_in: Client, made: Made) -> None:
    first, last = now_minute() - 90, now_minute() - 86
    set_onset(Verdict.objects.get(), (first, last))
    (mark,) = marks(signed_in, made)
    assert (mark["kind"], mark["at"], mark["until"]) == (
        "rollback_onset",
        clock.at_minute(first).isoformat(),
        clock.at_minute(last + 1).isoformat(),
    )
    html = signed_in.get(made.url()).content.decode()
    said = f"The regression began between {clock.format_minute(first)} and "
    assert f"{said}{clock.format_minute(last)}." in html and NOTE in html
    assert "onset of the regression</span>" in html


def test_without_an_onset_there_is_no_band(signed_in: Client, made: Made) -> None:
    set_onset(Verdict.objects.get(), None)
    assert marks(signed_in, made) == []
    html = signed_in.get(made.url()).content.decode()
    assert NOTE not in html and "The regression began" not in html


def test_an_onset_before_the_range_is_not_drawn(signed_in: Client, made: Made) -> None:
    set_onset(Verdict.objects.get(), (now_minute() - 5000, now_minute() - 4990))
    assert marks(signed_in, made) == []


def test_a_verdict_without_a_regression_has_no_band(signed_in: Client, made: Made) -> None:
    set_onset(Verdict.objects.get(), (now_minute() - 90, now_minute() - 86))
    Verdict.objects.update(kind="healthy")
    assert marks(signed_in, made) == []


def test_the_alert_page_has_a_band_and_its_text(signed_in: Client, alert: Alert) -> None:
    verdict = Verdict.objects.get(deployment=alert.deployment, current=True)
    first, last = now_minute() - 150, now_minute() - 147
    set_onset(verdict, (first, last))
    html = signed_in.get(f"/p/{alert.project.slug}/alerts/{alert.number}/").content.decode()
    said = f"the regression began between {clock.format_minute(first)} and "
    assert f"{said}{clock.format_minute(last)}" in html
    assert 'class="rspan"' in html and f'data-at="{clock.at_minute(first):%Y-%m-%dT%H:%M}' in html
    set_onset(verdict, None)
    html = signed_in.get(f"/p/{alert.project.slug}/alerts/{alert.number}/").content.decode()
    assert "rspan" not in html and "the regression began" not in html


@pytest.mark.parametrize(
    ("onset", "until", "band"),
    [
        (1000, None, ("23.08", "76.92")),
        (1050, 1060, ("61.54", "7.69")),
        (1100, 1100, ("99.60", "0.40")),
        (800, None, None),
        (1200, None, None),
    ],
)
def test_a_band_lies_in_the_chart(
    onset: int, until: int | None, band: tuple[str, str] | None
) -> None:
    chart = draw_driving_chart(
        span=choose_span(1000, 1100),
        series=[ChartSeries(2, "a", {0: 0.01, 5: 0.02})],
        marks=[],
        zero=False,
        onset=onset,
        until=until,
    )
    drawn = chart.onset if chart else None
    assert (drawn and (drawn.x, drawn.width)) == band


def test_labels_of_near_values_and_events_do_not_overlap() -> None:
    span = choose_span(1000, 1100)
    chart = draw_driving_chart(
        span=span,
        series=[ChartSeries(1, "a", {99: 10.0}), ChartSeries(2, "b", {99: 10.01, 0: 30.0})],
        marks=[
            ChartMark(1000, "deployment", "deployed"),
            ChartMark(1002, "watch", "WATCH"),
            ChartMark(1040, "roll_back", "ROLL BACK"),
            ChartMark(1041, "deployment", "rolled back"),
        ],
        zero=True,
    )
    assert chart is not None
    heights = sorted(float(end.label_y) for end in chart.ends)
    assert heights[1] - heights[0] >= 14
    named = [mark.text for mark in chart.marks if mark.at]
    assert named == ["ROLL BACK", "deployed"], "the other labels would cross them"
    assert chart.from_zero and chart.ticks[0][1] == "0"
