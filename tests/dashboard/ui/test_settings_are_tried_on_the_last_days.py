"""The backtest of the Detection page: shows the verdicts that the values in its fields would have
given in the last days, and saves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from dashboard.common import clock
from dashboard.demo.sender import build_past_reports
from dashboard.demo.simulated_fleet import build_fleet, build_instances
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.backtest import REASON_NO_BASELINE
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge.settings_overrides import list_settings
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import JudgingChoice, SettingsBacktest, Verdict
from dashboard.regressions.settings_backtest import REASON_DELETED, backtests_compute
from dashboard.vocabulary.metrics import METRICS
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock, time_is

__all__ = ["time_is"]

TRY = "/p/ranking/settings/judging/try/"


@pytest.fixture
def judged(time_is: Clock, project: Project, store_reports: Callable[..., Any]) -> None:
    """Two concurrent versions of `ranker`; the newer one has a ROLL BACK verdict."""
    from compilewatch.wire.messages import VERSION, Request

    clear_comparisons()
    for one in build_instances(build_fleet(judged_minutes=40)[:1], start_minute=NOW_MINUTE):
        one.first_minute = max(one.first_minute, NOW_MINUTE - 70)
        store_reports(
            Request(
                VERSION,
                time_is.unix(),
                one.identity,
                list(build_past_reports(one, start_minute=NOW_MINUTE)),
            )
        )
    fold_all()
    deployments_judge()


def read_card(client: Client) -> str:
    """The card after the workers finished the backtest."""
    backtests_compute(seconds=60.0)
    return client.get(TRY + "state/").content.decode()


def test_the_backtest_uses_the_values_in_the_fields_and_does_not_save_them(
    judged: None, signed_in: Client
) -> None:
    before = list(Verdict.objects.order_by("pk").values())
    page = signed_in.post(
        TRY, {"p50.muted": "yes", "eager.muted": "yes", "watch_alpha": "10"}
    ).content.decode()
    assert "Waiting for a worker." in page
    assert 'value="10"' in page
    card = read_card(signed_in)
    assert "1 evaluated again, " in card
    assert "skipped 1\xa0deployment: no baseline" in card
    assert not JudgingChoice.objects.exists()
    assert list(Verdict.objects.order_by("pk").values()) == before


def test_only_verdicts_that_change_are_listed(judged: None, signed_in: Client) -> None:
    signed_in.post(TRY, {})
    card = read_card(signed_in)
    assert "No verdict changes." in card
    assert "2026.11.3" not in card
    muted = {f"{name}.muted": "yes" for name in METRICS if f"{name}.muted" in list_settings()}
    assert signed_in.post(TRY, muted).status_code == 200
    card = read_card(signed_in)
    assert "1 would change" in " ".join(card.split())
    assert "2026.11.3" in card
    assert card.count("ROLL BACK</span>") == 1


def test_invalid_values_are_not_backtested(judged: None, signed_in: Client) -> None:
    answer = signed_in.post(TRY, {"p50.tolerated": "much"})
    assert answer.status_code == 400
    assert not SettingsBacktest.objects.exists()


def test_a_backtest_continues_to_its_end_in_another_run(judged: None, signed_in: Client) -> None:
    signed_in.post(TRY, {})
    again: list[int] = []
    for _ in range(3):
        assert SettingsBacktest.objects.filter(finished_at=None).exists()
        assert backtests_compute(seconds=0.0, unfinished=lambda: again.append(1)) == 1
    found = SettingsBacktest.objects.get()
    assert (found.done, found.evaluated, found.left_out) == (2, 1, {REASON_NO_BASELINE: 1})
    assert found.finished_at is not None
    assert len(again) == 2


def test_a_second_request_replaces_an_unfinished_backtest(judged: None, signed_in: Client) -> None:
    signed_in.post(TRY, {"watch_alpha": "10"})
    signed_in.post(TRY, {"watch_alpha": "5"})
    assert SettingsBacktest.objects.count() == 1
    assert "from the saved ones" in read_card(signed_in)


def test_a_deployment_that_fails_is_counted_and_the_others_are_evaluated(
    judged: None, signed_in: Client
) -> None:
    request = SettingsBacktest.objects.create(
        project=Project.objects.get(slug="ranking"),
        deployments=[0, Deployment.objects.order_by("-started_minute").values("pk")[0]["pk"]],
        requested_at=clock.now(),
        requested_by_name="eve",
    )
    backtests_compute(seconds=60.0)
    request.refresh_from_db()
    assert (request.evaluated, request.left_out) == (1, {REASON_DELETED: 1})
