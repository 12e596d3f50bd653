"""`manage.py rejudge` re-evaluates past deployments, counts those that it cannot evaluate, and
changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from dashboard.common import clock
from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.backtest import (
    REASON_DROPPED,
    REASON_NEVER_JUDGED,
    REASON_NO_BASELINE,
    REASON_TIME_LIMIT,
    backtest_deployments,
)
from dashboard.regressions.judge import PRODUCTION
from dashboard.regressions.judge.settings_overrides import build_settings, list_settings
from dashboard.regressions.judge.verdict_policy import LEAST_HOLD_MINUTES
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.judging_settings import detection_settings_set
from dashboard.regressions.models import Comparison, JudgingChoice, Verdict
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db
MUTED = {name: True for name in list_settings() if name.endswith(".muted")}


@pytest.fixture
def judged(side_by_side: list[SimulatedInstance], send: Callable[..., None]) -> Deployment:
    """The slower version with a ROLL BACK verdict."""
    for instance in side_by_side:
        send(instance)
    deployments_judge()
    return Deployment.objects.get(version__name="2026.11.3")


def rejudge(*options: str) -> str:
    out = StringIO()
    call_command("rejudge", "--project", "ranking", *options, stdout=out)
    return out.getvalue()


def rows() -> list[object]:
    return list(Verdict.objects.order_by("pk").values_list("pk", "kind", "sentence", "current"))


def test_the_same_settings_give_the_same_verdicts(judged: Deployment) -> None:
    said = rejudge("--since", "1d", "--dry-run")
    assert "ranker 2026.11.3 in production" in said
    assert "then ROLL BACK        now ROLL BACK\n" in said
    assert "1 deployments re-evaluated: 0 verdicts would change." in said
    assert f"1 skipped: {REASON_NO_BASELINE}." in said
    assert "No changes made." in said


def test_other_settings_list_the_differences_and_write_nothing(
    judged: Deployment,
) -> None:
    before = rows()
    said = rejudge("--dry-run", "--set", *(f"{name}=yes" for name in MUTED))
    assert "then ROLL BACK        now NOT ENOUGH DATA  differs" in said
    assert "1 verdicts would change" in said
    assert rows() == before
    assert deployments_judge() == 0


def test_live_versions_are_re_evaluated_and_history_remains(
    judged: Deployment, project: Project
) -> None:
    before = rows()
    JudgingChoice.objects.create(project=project, values=MUTED)
    assert "re-evaluates live deployments within seconds" in rejudge()
    assert rows() == before
    assert set(Comparison.objects.values_list("judged_minute", flat=True)) == {0}
    deployments_judge()
    kinds = list(
        Verdict.objects.filter(deployment=judged).order_by("pk").values_list("kind", "current")
    )
    assert kinds == [("roll_back", False), ("not_enough_data", True)]


def test_an_earlier_verdict_counts_even_if_it_was_withdrawn(
    judged: Deployment, project: Project
) -> None:
    detection_settings_set(project=project, values=MUTED, actor_name="tests")
    deployments_judge()
    found = backtest_deployments(project=project, since_minute=0, settings_of=lambda _: PRODUCTION)
    assert [(line.then, line.now, line.differs) for line in found.lines] == [
        ("roll_back", "roll_back", False)
    ]


def test_expired_minutes_are_not_estimated(
    judged: Deployment, project: Project, time_is: Clock
) -> None:
    time_is.minute += 9 * 1440
    found = backtest_deployments(project=project, since_minute=0, settings_of=lambda _: PRODUCTION)
    assert not found.lines
    assert found.left_out == {REASON_DROPPED: 2}


def test_only_the_requested_part_of_a_deployment_is_evaluated(
    judged: Deployment, project: Project
) -> None:
    early = PRODUCTION.warm_up_minutes + LEAST_HOLD_MINUTES - 1
    Verdict.objects.filter(deployment=judged).update(minute=judged.started_minute + early - 1)
    found = backtest_deployments(
        project=project, since_minute=0, settings_of=lambda _: PRODUCTION, minutes=early
    )
    [line] = found.lines
    assert (line.then, line.now, line.differs) == ("roll_back", "watch", True)
    found = backtest_deployments(
        project=project, since_minute=0, settings_of=lambda _: PRODUCTION, minutes=5
    )
    assert found.left_out == {REASON_NO_BASELINE: 1, REASON_NEVER_JUDGED: 1}


def test_deployments_beyond_the_time_limit_are_counted(
    judged: Deployment, project: Project
) -> None:
    found = backtest_deployments(
        project=project, since_minute=0, settings_of=lambda _: PRODUCTION, seconds=0.0
    )
    assert found.left_out == {REASON_TIME_LIMIT: 2}


def test_another_project_is_not_evaluated(judged: Deployment, other_project: Project) -> None:
    found = backtest_deployments(
        project=other_project, since_minute=0, settings_of=lambda _: PRODUCTION
    )
    assert (found.lines, dict(found.left_out)) == ([], {})


def test_trying_settings_does_not_affect_live_comparisons(
    judged: Deployment, project: Project, time_is: Clock
) -> None:
    backtest_deployments(
        project=project, since_minute=0, settings_of=lambda _: build_settings(MUTED)
    )
    Comparison.objects.update(judged_minute=0)
    deployments_judge()
    assert Verdict.objects.get(deployment=judged, current=True).kind == "roll_back"
    assert clock.unix() // 60 == NOW_MINUTE


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--since", "month"),
            "--since is 'month', expected a number of hours or days such as 12h or 30d.",
        ),
        (("--set", "p50.muted=yes"), "--set requires --dry-run"),
        (
            ("--dry-run", "--set", "p51.muted=yes"),
            "'p51.muted' is not a setting, expected one of roll_back_alpha",
        ),
        (
            ("--dry-run", "--set", "p50.tolerated=much"),
            "Tolerated change of p50 is 'much', expected a number from 1 to 200%.",
        ),
    ],
)
def test_invalid_arguments_are_one_sentence(
    project: Project, options: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CommandError) as refused:
        rejudge(*options)
    assert str(refused.value).startswith(said)
