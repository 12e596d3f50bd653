"""A version with calls that wait for compilations after warm-up is ROLL BACK with the cause,
however the compilations end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from compilewatch.wire.messages import Compile, Report
from compilewatch.wire.sketch import Sketch

from dashboard.accounts.models import User
from dashboard.demo.simulated_fleet import Fault, SimulatedInstance
from dashboard.fleet.budgets import Budgets, budgets_set
from dashboard.projects.models import Project
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.judging_settings import detection_settings_set
from dashboard.regressions.models import Verdict

pytestmark = pytest.mark.django_db

Sent = Callable[..., None]
EVERY_CALL = Fault(
    frame="score_batch", file="ranker/score.py", line=118, guard="self.tag == 'a'", stalled=1.0
)
EVERY_THIRD = replace(
    EVERY_CALL, stalled=1 / 3, outcome="suppressed", guard="backend raised RuntimeError: no kernel"
)


def judged(instances: list[SimulatedInstance], send: Sent, before: Fault, after: Fault) -> Verdict:
    for instance in (instances[0], instances[-1]):
        instance.rollout = replace(
            instance.rollout, fault=before if instance is instances[0] else after
        )
        send(instance)
    deployments_judge()
    return Verdict.objects.get(current=True, deployment__version__name="2026.11.3")


@pytest.mark.parametrize(
    ("fault", "share", "cause"),
    [
        (EVERY_CALL, 1.0, "`score_batch` recompiles repeatedly (guard: self.tag == 'a')"),
        (
            EVERY_THIRD,
            1 / 3,
            "`score_batch` fails to compile (error: backend raised RuntimeError: no kernel)",
        ),
    ],
)
def test_waiting_in_every_call_or_every_third_is_a_roll_back_with_its_cause(
    side_by_side: list[SimulatedInstance], send: Sent, fault: Fault, share: float, cause: str
) -> None:
    verdict = judged(side_by_side, send, Fault(), fault)
    rows = {row["metric"]: row for row in verdict.evidence["evidence"]}
    assert (verdict.kind, verdict.cause) == ("roll_back", cause)
    assert " wait for a compilation" in verdict.sentence and verdict.sentence.endswith(f"{cause}.")
    assert rows["stalled"]["drives"] and rows["stalled"]["baseline"] == 0.0
    assert rows["stalled"]["candidate"] == pytest.approx(share, abs=0.01)
    assert rows["stalled_time"]["label"] == "REGRESSED" and rows["stalled_time"]["candidate"] > 0.9
    assert rows["p99"]["label"] == "REGRESSED" and rows["p99"]["candidate"] > 0.5


def test_an_eager_fallback_is_the_cause_even_if_calls_waited_before(
    side_by_side: list[SimulatedInstance], send: Sent
) -> None:
    """Few calls wait, each for a long time: within the budget of calls, but the wait time is worse
    than on the baseline."""
    latched = side_by_side[-1]
    latched.rollout = replace(
        latched.rollout, fault=replace(EVERY_CALL, stalled=0.0, eager=0.9, slower=2.0)
    )
    plain = latched.report

    def changed(*, seq: int, start: float, end: float) -> Report:
        report = plain(seq=seq, start=start, end=end)
        for region in report.regions[:1]:
            region.stalled = Sketch.of([60.0])
            region.calls += 1
        again = Compile(
            start + 1.0,
            f"0/{seq}",
            "recompile",
            "ok",
            frame="score_batch",
            reason="self.tag == 'a'",
            reason_kind="guard",
        )
        report.compiles.append(again)
        return report

    latched.report = changed  # type: ignore[method-assign]
    verdict = judged(side_by_side, send, Fault(), latched.rollout.fault)
    assert {
        row["metric"] for row in verdict.evidence["evidence"] if row["label"] == "REGRESSED"
    } >= {"eager", "stalled_time"}
    assert not any(fact["kind"] == "stalled_calls" for fact in verdict.evidence["facts"])
    assert (
        "`score_batch` reached its recompile limit" in verdict.cause
        and "repeatedly" not in verdict.sentence
    )


def test_a_baseline_that_stalls_equally_makes_it_no_regression_and_the_budget_still_counts(
    side_by_side: list[SimulatedInstance], send: Sent
) -> None:
    verdict = judged(side_by_side, send, EVERY_THIRD, EVERY_THIRD)
    (fact,) = verdict.evidence["facts"]
    assert (verdict.kind, fact["kind"], fact["severity"], fact["on_baseline"]) == (
        "watch",
        "stalled_calls",
        "watch",
        1,
    )
    assert (
        "calls (33.3%) waited for a compilation in the last half hour, above the "
        "budget of 2%" in verdict.sentence
    )
    assert "and on 1 of 2026.11.2" in verdict.sentence


@pytest.mark.parametrize(
    ("budget", "kind"), [(None, "roll_back"), (1.0, "not_enough_data"), (0.1, "watch")]
)
def test_a_first_version_is_compared_only_with_the_budget(
    side_by_side: list[SimulatedInstance],
    send: Sent,
    project: Project,
    budget: float | None,
    kind: str,
) -> None:
    budgets_set(project=project, model=None, budgets=Budgets(stalled=budget), actor_name="tests")
    alone = side_by_side[-1]
    alone.rollout = replace(alone.rollout, fault=EVERY_THIRD)
    send(alone)
    deployments_judge()
    verdict = Verdict.objects.get(current=True)
    assert verdict.kind == kind
    assert (kind == "not_enough_data") != (
        "calls (33.3%) waited for a compilation" in verdict.sentence
    )


def test_a_first_version_is_not_watched_if_stalled_calls_are_muted(
    side_by_side: list[SimulatedInstance], send: Sent, project: Project, user: User
) -> None:
    detection_settings_set(project=project, values={"stalled.muted": True}, actor=user)
    alone = side_by_side[-1]
    alone.rollout = replace(alone.rollout, fault=EVERY_THIRD)
    send(alone)
    deployments_judge()
    verdict = Verdict.objects.get(current=True)
    assert verdict.kind == "not_enough_data"
    assert [fact["kind"] for fact in verdict.evidence["facts"]] == ["stalled_calls"], (
        "the metric is still shown"
    )
