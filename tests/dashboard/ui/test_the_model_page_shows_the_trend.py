"""The 28-day trend of a model, from stored hours to the page: better than in the four weeks before
and by how much, or the reason why there is no comparison."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.alerts.models import Alert, AlertOutcome, AlertState
from dashboard.common import clock
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.projects.models import Project
from tests.dashboard.ui.weeks_story import weeks

pytestmark = pytest.mark.django_db


def address(model: WatchedModel, ending: str = "/") -> str:
    return f"/p/ranking/models/{model.pk}/weeks{ending}"


def page(client: Client, model: WatchedModel, **headers: str) -> str:
    answer = client.get(address(model), headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def test_stored_hours_become_a_sentence_with_its_numbers(
    signed_in: Client, project: Project
) -> None:
    model = weeks(
        project,
        lambda ago: 0.0111 if ago <= 28 else 0.0121,
        compiled=lambda ago: 998 if ago <= 28 else 900,
    )
    html = page(signed_in, model)
    assert '<h2 id="weeks">Better than the previous 28 days' in html
    assert "p50 of <code>forward</code> on NVIDIA H100 is 8.3% faster (" in html
    assert "12.1\u00a0ms → 11.1\u00a0ms" in html
    assert "Served compiled: 90% → 99.8% of calls." in html


def test_roll_back_alerts_of_both_periods_are_counted_without_false_positives(
    signed_in: Client, project: Project
) -> None:
    model = weeks(project, lambda ago: 0.0121)
    deployment = Deployment.objects.get(model=model)
    today = int(clock.unix() // 86400)
    for number, (ago, outcome) in enumerate(
        [(3, ""), (30, ""), (40, AlertOutcome.ROLLED_BACK), (41, AlertOutcome.DISMISSED), (70, "")]
    ):
        Alert.objects.create(
            project=project, deployment=deployment, number=number, cause=f"cause {number}", state=AlertState.RESOLVED,
            severity="roll_back", worst="roll_back", title="t", opened_at=clock.at_minute((today - ago) * 1440 + 60), outcome=outcome,
        )  # fmt: skip
    assert (
        "1\u00a0ROLL BACK alert instead of 2, with 1\u00a0deployment before and 0 since."
        in page(signed_in, model)
    )


def test_another_type_of_gpu_is_not_an_improvement(signed_in: Client, project: Project) -> None:
    model = weeks(
        project,
        lambda ago: 0.006 if ago <= 28 else 0.012,
        gpu=lambda ago: "NVIDIA H200" if ago <= 28 else "NVIDIA H100",
    )
    html = page(signed_in, model)
    assert '<h2 id="weeks">Not comparable' in html
    assert "faster (" not in html


def test_ten_days_are_not_enough_history(signed_in: Client, project: Project) -> None:
    model = weeks(project, lambda ago: 0.012, days=10)
    assert "Not enough history: data starts" in page(signed_in, model)


def test_a_model_without_calls_states_this(signed_in: Client, project: Project) -> None:
    model = weeks(project, lambda ago: 0.012, days=0)
    assert "No calls in the last 56 days." in page(signed_in, model)


def test_the_trend_is_a_tab_of_the_model(signed_in: Client, project: Project) -> None:
    model = weeks(project, lambda ago: 0.012)
    html = signed_in.get(f"/p/ranking/models/{model.pk}/").content.decode()
    assert f'<a href="{address(model)}">' in html
    assert f'<a href="{address(model)}" aria-current="page">' in page(signed_in, model)


def test_files_match_the_page(signed_in: Client, project: Project) -> None:
    model = weeks(project, lambda ago: 0.0111 if ago <= 28 else 0.0121)
    told = signed_in.get(address(model, ".json")).json()
    assert told["answer"] == "better"
    first = told["rows"][0]
    assert (first["number"], first["unit"]) == ("p50", "s")
    assert first["change_ratio"] == pytest.approx(first["after"] / first["before"] - 1)
    assert first["change_low_ratio"] <= first["change_ratio"] <= first["change_high_ratio"] < 0
    lines = signed_in.get(address(model, ".csv")).content.decode().splitlines()
    assert (
        lines[0]
        == "number,region,unit,before,after,change_ratio,change_low_ratio,change_high_ratio,how"
    )
    assert len(lines) == len(told["rows"]) + 1


def test_the_number_of_queries_does_not_grow_with_the_history(
    signed_in: Client, project: Project
) -> None:
    counts = []
    for days in (10, 56):
        model = weeks(project, lambda ago: 0.012, days=days, name=f"ranker-{days}")
        with CaptureQueriesContext(connection) as caught:
            page(signed_in, model)
        counts.append(len(caught.captured_queries))
    assert counts[0] == counts[1]
    assert counts[1] <= 2 + 8


def test_a_user_without_membership_sees_no_model(client: Client, project: Project) -> None:
    model = weeks(project, lambda ago: 0.012, days=2)
    assert client.get(address(model)).status_code == 302
