"""A failed golden batch is ROLL BACK if the baseline passed it, WATCH if the baseline did not
compare it, and known if the baseline failed it too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from compilewatch.wire.messages import Fact as WireFact
from compilewatch.wire.messages import Report
from compilewatch.wire.numerics import Parity, parity_data

from dashboard.alerts.alert_title import build_alert_title
from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.regressions.judge import JudgeContext, Outcome, judge
from dashboard.regressions.judge.certain_facts import ObservedFact, group_certain_facts
from dashboard.regressions.judge.text.verdict import first_version_sentence, verdict_sentence
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.fact_lines import fact_lines
from tests.dashboard.regressions.conftest import Clock
from tests.dashboard.regressions.fleets import every_minute, instance
from tests.dashboard.regressions.test_certain_facts_ask_for_watch_at_most import healthy
from tests.dashboard.regressions.test_processes_are_judged_like_regions import NAMES

WHY = "output is off by 0.2, 100 times the tolerance of 0.002 (eager's own error is 0.0009)"
FAILED = ObservedFact("parity", "candidate", "c1", 30, "batch", WHY, place="gpu-01 / 0")
PASSED = ObservedFact("parity", "baseline", "b1", 10, "batch", passed=True)


def outcome_with(*facts: ObservedFact, minutes: int = 90, now: int = 90) -> Outcome:
    calls = every_minute([instance(name) for name in NAMES], minutes)
    return judge(calls, now_minute=now, deployed_minute=0, known=JudgeContext(facts=facts))


def sentence_of(outcome: Outcome) -> str:
    return verdict_sentence(
        outcome, candidate="new", baseline="old", say_minute=lambda minute: f"minute {minute}"
    )


def test_a_wrong_result_on_one_instance_is_rolled_back_if_the_baseline_was_right() -> None:
    outcome = outcome_with(
        FAILED,
        PASSED,
        replace(PASSED, instance="b2"),
        replace(PASSED, arm="candidate", instance="c2"),
    )
    assert outcome.verdict == "roll_back"
    (fact,) = outcome.facts
    assert (fact.severity, fact.instances, fact.passed, fact.passed_on_baseline) == (
        "roll_back",
        ("c1",),
        1,
        2,
    )
    assert sentence_of(outcome) == (
        f"Roll back new: compiled output of `batch` differs from eager: {WHY}, on an "
        "instance (gpu-01 / 0) of new since minute 30, "
        "and passed on 1 other; passed on 2 of old."
    )


def test_a_baseline_that_did_not_compare_limits_the_verdict_to_watch() -> None:
    outcome = outcome_with(FAILED, replace(PASSED, about="another batch"))
    assert outcome.verdict == "watch"
    assert sentence_of(outcome).endswith(
        "on an instance (gpu-01 / 0) of new since minute 30; not checked on old."
    )


def test_a_failure_of_the_baseline_too_is_reported_and_changes_nothing() -> None:
    outcome = outcome_with(FAILED, PASSED, replace(FAILED, arm="baseline", instance="b2"))
    assert outcome.verdict == "healthy"
    assert [(fact.severity, fact.on_baseline) for fact in outcome.facts] == [("known", 1)]


def test_a_passed_batch_is_no_fact() -> None:
    outcome = outcome_with(PASSED, replace(PASSED, arm="candidate"))
    assert (outcome.verdict, outcome.facts) == ("healthy", ())


def test_a_version_without_calls_is_evaluated_by_its_wrong_result() -> None:
    calls = every_minute([instance(name) for name in NAMES if name.startswith("b")], 20)
    outcome = judge(
        calls, now_minute=20, deployed_minute=15, known=JudgeContext(facts=(FAILED, PASSED))
    )
    assert outcome.verdict == "roll_back"


def test_the_first_version_is_watched_and_many_places_are_counted() -> None:
    facts = [
        replace(FAILED, instance=f"c{number}", place=f"gpu-{number:02d} / 0") for number in range(5)
    ]
    (found,) = group_certain_facts(facts, now_minute=60)
    sentence = first_version_sentence(found, candidate="new", say_minute=str)
    assert (
        found.severity == "watch"
        and "on 5 instances (gpu-00 / 0, gpu-01 / 0, gpu-02 / 0 and 2 more) of new since 30"
        in sentence
    )


def test_the_order_of_facts_changes_nothing() -> None:
    facts = [
        FAILED,
        PASSED,
        replace(PASSED, arm="candidate", instance="c2"),
        replace(FAILED, about="z"),
        replace(FAILED, instance="c3"),
    ]
    assert group_certain_facts(facts, now_minute=60) == group_certain_facts(
        facts[::-1], now_minute=60
    )
    assert [fact.severity for fact in group_certain_facts(facts, now_minute=60)] == [
        "roll_back",
        "watch",
    ]


def add_batch_result(one: SimulatedInstance, **fields: Any) -> None:
    """Makes the instance report a golden batch in its twentieth window."""
    plain, data = (
        one.report,
        parity_data(
            Parity(
                "batch",
                where="output",
                eager_error=9e-4,
                tolerance=2e-3,
                reference="float64",
                **fields,
            )
        ),
    )

    def with_fact(*, seq: int, start: float, end: float) -> Report:
        report = plain(seq=seq, start=start, end=end)
        return replace(
            report, facts=[*report.facts, *([WireFact("parity", start, data)] if seq == 20 else [])]
        )

    one.report = with_fact  # type: ignore[method-assign]


@pytest.mark.django_db
def test_reported_batches_become_a_verdict_that_ends_with_the_process(
    side_by_side: list[SimulatedInstance], send: Callable[..., None], time_is: Clock
) -> None:
    healthy(side_by_side)
    old = [one for one in side_by_side if one.identity.version == "2026.11.2"]
    new = [one for one in side_by_side if one.identity.version == "2026.11.3"]
    for one in old:
        add_batch_result(one, state="passed", error=1e-3)
    for number, one in enumerate(new):
        add_batch_result(
            one, state="failed" if number else "passed", error=0.1 * number if number else 1e-3
        )
    for one in side_by_side:
        send(one)
    deployments_judge()
    verdict = Verdict.objects.get(current=True, deployment__version__name="2026.11.3")
    assert verdict.kind == "roll_back"
    assert (
        f"compiled output of `batch` differs from eager: {WHY}, on {len(new) - 1} instances ("
        in verdict.sentence
    )
    assert all(one.identity.host in verdict.sentence for one in new[1:])
    assert verdict.sentence.endswith(f"and passed on 1 other; passed on {len(old)} of 2026.11.2.")
    title = build_alert_title(
        model="ranker", version="2026.11.3", sentence=verdict.sentence, evidence=verdict.evidence
    )
    assert title.startswith("ranker 2026.11.3: compiled output of `batch` differs")
    (line,) = fact_lines(verdict.evidence)
    assert (line.mark, line.where) == (
        "roll_back",
        f"on {len(new) - 1}\u00a0instances, baseline: passed on {len(old)}\u00a0instances",
    )
    time_is.minute += 45
    deployments_judge()
    assert (
        Verdict.objects.get(current=True, deployment__version__name="2026.11.3").kind != "roll_back"
    )
