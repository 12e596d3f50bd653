"""The backtest of the Detection page: shows the verdicts that the values in its fields would have
given in the last days, and saves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from dashboard.demo.sender import build_past_reports
from dashboard.demo.simulated_fleet import build_fleet, build_instances
from dashboard.fleet.fold_service import fold_all
from dashboard.projects.models import Project
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import JudgingChoice, Verdict
from dashboard.ui.pages.settings.detection import backtest as settings_backtest
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


def test_the_backtest_uses_the_values_in_the_fields_and_does_not_save_them(
    judged: None, signed_in: Client
) -> None:
    before = list(Verdict.objects.order_by("pk").values())
    page = signed_in.post(
        TRY, {"p50.muted": "yes", "eager.muted": "yes", "watch_alpha": "10"}
    ).content.decode()
    assert "Backtest" in page
    assert "1 re-evaluated, " in page
    assert "1 skipped: no baseline." in page
    assert "2026.11.3" in page
    assert 'value="10"' in page
    assert not JudgingChoice.objects.exists()
    assert list(Verdict.objects.order_by("pk").values()) == before


def test_the_backtest_shows_the_actual_and_the_new_verdict(judged: None, signed_in: Client) -> None:
    page = signed_in.post(TRY, {}).content.decode()
    assert page.count("ROLL BACK</span>") == 2
    assert "0 would change" in page


def test_invalid_values_are_not_backtested(judged: None, signed_in: Client) -> None:
    answer = signed_in.post(TRY, {"p50.tolerated": "much"})
    assert answer.status_code == 400
    assert "Backtest" not in answer.content.decode()


def test_a_backtest_ends_in_time_and_lists_skipped_versions(
    judged: None, signed_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings_backtest, "TIME_BUDGET_S", 0.0)
    page = signed_in.post(TRY, {}).content.decode()
    assert "No deployment in this period can be re-evaluated." in page
    assert "2 skipped: time limit of the backtest exceeded." in page


def test_only_one_backtest_runs_at_a_time(judged: None, signed_in: Client) -> None:
    with settings_backtest._lock:
        assert "Another backtest is running" in signed_in.post(TRY, {}).content.decode()
    assert "Another backtest is running" not in signed_in.post(TRY, {}).content.decode()
