"""Sampled calls: shadow calls that differ are WATCH; NaN and infinities are WATCH only if the
sampled calls of the baseline had none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from compilewatch.wire.messages import Fact as WireFact
from compilewatch.wire.messages import Report
from compilewatch.wire.numerics import Parity, parity_data

from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.models import Finding
from dashboard.regressions.judge.certain_facts import ObservedFact, group_certain_facts
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.fact_lines import fact_lines
from tests.dashboard.regressions.conftest import Clock
from tests.dashboard.regressions.test_a_wrong_result_asks_for_a_roll_back import (
    outcome_with,
    sentence_of,
)
from tests.dashboard.regressions.test_certain_facts_ask_for_watch_at_most import healthy

WHY = "output holds NaN or infinite values in 3 of 500 sampled calls"
NAN = ObservedFact("non_finite", "candidate", "c1", 30, "forward", WHY, place="gpu-01 / 0")
NONE = ObservedFact("non_finite", "baseline", "b1", 10, "forward", passed=True)
APART = ObservedFact(
    "shadow_parity",
    "candidate",
    "c1",
    30,
    "forward",
    "30 of 900 sampled calls are beyond the tolerance",
    place="gpu-01 / 0",
)


def test_nan_is_watched_if_the_baseline_had_none() -> None:
    outcome = outcome_with(NAN, NONE)
    assert outcome.verdict == "watch"
    assert sentence_of(outcome).endswith(
        "`forward` returns NaN or infinite values: output holds NaN or infinite values in 3 "
        "of 500 sampled calls, "
        "on an instance (gpu-01 / 0) of new since minute 30; sampled calls of old had none."
    )


def test_infinities_without_earlier_checks_are_no_news() -> None:
    assert outcome_with(NAN).verdict == "healthy" and outcome_with(NAN).facts == ()
    assert outcome_with(NAN, replace(NONE, about="another region")).verdict == "healthy"


def test_nan_on_the_baseline_too_changes_nothing() -> None:
    outcome = outcome_with(NAN, NONE, replace(NAN, arm="baseline", instance="b2"))
    assert outcome.verdict == "healthy" and [fact.severity for fact in outcome.facts] == ["known"]


@pytest.mark.parametrize(
    "before", [(), (replace(APART, arm="baseline", instance="b1", passed=True),)]
)
def test_shadow_calls_that_differ_are_watched_whatever_the_baseline_showed(
    before: tuple[ObservedFact, ...],
) -> None:
    outcome = outcome_with(APART, *before)
    assert outcome.verdict == "watch"
    ending = "passed on 1 of old." if before else "not checked on old."
    assert sentence_of(outcome).endswith(
        f"{APART.why}, on an instance (gpu-01 / 0) of new since minute 30; {ending}"
    )
    assert "differs from eager on live calls" in sentence_of(outcome)


def test_a_golden_batch_of_the_same_name_is_independent() -> None:
    facts = [
        replace(APART, kind="parity"),
        replace(APART, arm="baseline", instance="b1", passed=True),
    ]
    assert [fact.severity for fact in group_certain_facts(facts, now_minute=60)] == ["watch"]


def add_parity_results(one: SimulatedInstance, *results: Parity) -> None:
    plain = one.report

    def with_facts(*, seq: int, start: float, end: float) -> Report:
        report = plain(seq=seq, start=start, end=end)
        return replace(
            report,
            facts=[
                *report.facts,
                *(
                    [WireFact("parity", start, parity_data(one)) for one in results]
                    if seq == 20
                    else []
                ),
            ],
        )

    one.report = with_facts  # type: ignore[method-assign]


@pytest.mark.django_db
def test_reported_samples_become_a_verdict(
    side_by_side: list[SimulatedInstance], send: Callable[..., None], time_is: Clock
) -> None:
    healthy(side_by_side)
    values: dict[str, Any] = {
        "region": "forward",
        "kind": "finite",
        "samples": 500,
        "where": "output",
    }
    for one in side_by_side:
        old = one.identity.version == "2026.11.2"
        shadow = Parity(
            "shadow calls of forward",
            "passed",
            kind="shadow",
            region="forward",
            samples=40,
            error=1e-6,
            tolerance=1e-4,
        )
        told = Parity(
            "values of forward", "passed" if old else "failed", beyond=0 if old else 7, **values
        )
        add_parity_results(one, told, shadow)
    for one in side_by_side:
        send(one)
    deployments_judge()
    verdict = Verdict.objects.get(current=True, deployment__version__name="2026.11.3")
    assert verdict.kind == "watch"
    (fact,) = verdict.evidence["facts"]
    assert (fact["kind"], fact["severity"], fact["about"], len(fact["instances"])) == (
        "non_finite",
        "watch",
        "forward",
        3,
    )
    assert (
        "returns NaN or infinite values" in verdict.sentence
        and Finding.objects.filter(kind="parity").count() == 0
    )
    assert select_strongest_evidence(verdict.evidence)[0]["name"] == "NaN or infinite"
    assert "baseline: none in sampled calls" in str(fact_lines(verdict.evidence))
