"""The Detection page measures settings on placebo pairs: it requests, shows progress, and shows
rates and detectable change with their basis, or the missing data."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.judge import PRODUCTION
from dashboard.regressions.judging_settings import detection_settings_set
from dashboard.regressions.models import JudgingChoice, PlaceboPreview
from dashboard.regressions.placebo_periods import REASON_ALERTED, REASON_FEW

pytestmark = pytest.mark.django_db
PAGE = "/p/ranking/settings/judging/"
MEASURE, MEASURED = f"{PAGE}measure/", f"{PAGE}measured/"
UNITS = [f"u{n}" for n in range(8)]
PLAN = {
    "periods": [[1, 0, 360, UNITS], [2, 0, 360, UNITS[:4]]],
    "left_out": {REASON_ALERTED: 2, REASON_FEW: 1},
}
TALLY = {
    "pairs": 240,
    "roll_backs": 0,
    "alerts": 5,
    "undecided": 12,
    "sizes": [0.05, 0.12] + [0.18] * 7 + [0.5],
}


def preview(project: Project, **changes: Any) -> PlaceboPreview:
    """A finished preview of the saved settings."""
    fields = {
        "plan": PLAN,
        "done": 2,
        "tally": TALLY,
        "requested_at": clock.now() - timedelta(minutes=4),
        "requested_by_name": "ada",
        "finished_at": clock.now() - timedelta(minutes=3),
    }
    return PlaceboPreview.objects.create(project=project, **{**fields, **changes})


def page(client: Client, address: str = PAGE) -> str:
    return client.get(address).content.decode()


def test_rates_are_shown_with_their_interval_and_the_set_rate(
    signed_in: Client, project: Project
) -> None:
    preview(project)
    shown = page(signed_in)
    assert (
        "With these settings, a change of 18% in call time is detected in 90% of cases within "
        "6\u00a0h, and at most 1 in 80 healthy deployments gets a false ROLL BACK." in shown
    )
    assert "0 of 240" in shown and "<b>at most 1 in 80</b>" in shown
    assert "5 of 240" in shown and "<b>1 in 48</b>" in shown
    assert "95% CI 1 in 140 to 1 in 20" in shown
    assert "<b>exceeded</b>" not in shown
    assert "9 of 10 (90%)" in shown
    assert "2 to 4 instances on each side" in shown
    assert "240\u00a0placebo pairs from 2\u00a0periods of 2\u00a0healthy versions" in shown
    assert "12 of 240 pairs ended NOT ENOUGH DATA." in shown
    assert f"Not used: 2\u00a0versions: {REASON_ALERTED}; 1\u00a0version: {REASON_FEW}." in shown
    assert "real data" in shown and "Injected changes are simulated" in shown
    assert 'data-t="ago"' in shown.split("Computed")[1][:200]


def test_the_set_rate_is_that_of_the_measured_values(signed_in: Client, project: Project) -> None:
    values = {"roll_back_alpha": 0.004, "watch_alpha": 0.01}
    preview(project, values=values, tally={**TALLY, "alerts": 24, "roll_backs": 1})
    shown = page(signed_in)
    assert "1 in 250" in shown and "1 in 100" in shown
    assert "about 1 in 240 healthy deployments" in shown
    assert shown.count("<b>exceeded</b>") == 1
    assert (
        "Measured with values that differ from the saved ones:</b> "
        "False-positive rate of ROLL BACK: 0.4%; False-positive rate of WATCH: 1%." in shown
    )
    detection_settings_set(project=project, values=values, actor_name="tests")
    assert "differ from the saved ones" not in page(signed_in)


def test_no_detectable_change_is_stated(signed_in: Client, project: Project) -> None:
    preview(project, tally={**TALLY, "sizes": [None, None]})
    assert "no change up to 100% in call time is detected in 90% of cases" in page(signed_in)


def test_too_few_pairs_name_what_is_missing(signed_in: Client, project: Project) -> None:
    assert "Not measured yet." in page(signed_in)
    preview(project, tally={**TALLY, "pairs": 3, "alerts": 0})
    shown = page(signed_in)
    assert "10 placebo pairs are needed; 3\u00a0placebo pairs found." in shown
    assert "at least 4 instances that ran together for 2\u00a0h in the last 8\u00a0days." in shown
    assert REASON_FEW in shown and "With these settings, " not in shown


def test_the_button_requests_the_values_in_the_fields_and_saves_no_setting(
    signed_in: Client, project: Project
) -> None:
    shown = signed_in.post(MEASURE, {"watch_alpha": "10"}).content.decode()
    asked = PlaceboPreview.objects.get()
    assert (asked.values, asked.requested_by_name) == ({"watch_alpha": 0.1}, "ada")
    assert 'value="10"' in shown and "Waiting for a worker." in shown
    assert f'hx-get="{MEASURED}"' in shown
    assert not JudgingChoice.objects.exists()
    PlaceboPreview.objects.update(plan=PLAN, done=1, tally={**TALLY, "pairs": 4})
    part = page(signed_in, MEASURED)
    assert "1 of 2\u00a0periods evaluated, 4\u00a0placebo pairs so far." in part
    PlaceboPreview.objects.update(finished_at=clock.now(), tally=TALLY, done=2)
    assert "at most 1 in 80" in page(signed_in, MEASURED)
    assert "hx-get" not in page(signed_in).split('id="measured"')[1]


def test_invalid_values_are_not_requested(signed_in: Client, project: Project) -> None:
    assert signed_in.post(MEASURE, {"p50.tolerated": "much"}).status_code == 400
    assert not PlaceboPreview.objects.exists()


def test_a_failed_measurement_is_reported(signed_in: Client, project: Project) -> None:
    preview(project, plan=None, tally={}, done=1)
    assert "The measurement failed." in page(signed_in)


def test_a_model_shows_its_own_measurement(signed_in: Client, project: Project) -> None:
    now = clock.now()
    model = WatchedModel.objects.create(
        project=project, name="ranker", first_seen_at=now, last_seen_at=now
    )
    preview(project, model=model)
    assert "Not measured yet." in page(signed_in)
    assert "at most 1 in 80" in page(signed_in, f"{PAGE}?model={model.pk}")
    assert "at most 1 in 80" in page(signed_in, f"{MEASURED}?model={model.pk}")
    signed_in.post(MEASURE, {"model": str(model.pk)})
    assert PlaceboPreview.objects.get(finished_at=None).model == model


def test_a_value_that_equals_the_default_does_not_differ(
    signed_in: Client, project: Project
) -> None:
    preview(project, values={"roll_back_alpha": PRODUCTION.roll_back_alpha})
    assert "differ from the saved ones" not in page(signed_in)
