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
from dashboard.ui.charts.recovery_chart import choose_span, recovery_draw
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
    assert 'class="onsetf"' in html and "shaded span: onset" in html
    set_onset(verdict, None)
    html = signed_in.get(f"/p/{alert.project.slug}/alerts/{alert.number}/").content.decode()
    assert "onsetf" not in html and "the regression began" not in html


@pytest.mark.parametrize(
    ("onset", "band"),
    [
        ((1000, 1009), ("129.4", "28.5")),
        ((1000, 1000), ("129.4", "3.0")),
        ((1100, 1100), ("411.0", "3.0")),
        ((800, 900), None),
        ((1200, 1210), None),
    ],
)
def test_a_band_lies_in_the_chart(onset: tuple[int, int], band: tuple[str, str] | None) -> None:
    span = choose_span(1000, 1100)
    chart = recovery_draw(span, [(2, {0: 0.01, 5: 0.02})], [], None, onset=onset)
    drawn = chart.onset if chart else None
    assert (drawn and (drawn.x, drawn.width)) == band
