"""Eager fallback, stuck compilations and out-of-memory events are immediate findings: WATCH if they
are new, and never more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from compilewatch.wire.messages import Fact as WireFact
from compilewatch.wire.messages import Report

from dashboard.demo.simulated_fleet import Fault, SimulatedInstance
from dashboard.fleet.models import Instance
from dashboard.regressions.judge import JudgeContext, Outcome, judge
from dashboard.regressions.judge.certain_facts import ObservedFact, group_certain_facts
from dashboard.regressions.judge.text.verdict import verdict_sentence
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from tests.dashboard.regressions.conftest import Clock
from tests.dashboard.regressions.fleets import every_minute, instance
from tests.dashboard.regressions.test_processes_are_judged_like_regions import (
    NAMES,
    state,
    states,
)
from tests.dashboard.requests import instance_id

LATCHED = ObservedFact(
    "latched_eager", "candidate", "c1", 30, "forward", "it reached its recompile limit"
)


def outcome_with(*facts: ObservedFact, minutes: int = 90) -> Outcome:
    calls = every_minute([instance(name) for name in NAMES], minutes)
    return judge(calls, now_minute=minutes, deployed_minute=0, known=JudgeContext(facts=facts))


def test_an_eager_fallback_turns_healthy_into_watch_and_is_reported():
    outcome = outcome_with(LATCHED, replace(LATCHED, instance="c2", since=40))
    assert (outcome.verdict, outcome.transitions[-1]) == ("watch", (59, "watch"))
    (fact,) = outcome.facts
    assert (fact.severity, fact.instances, fact.since, fact.on_baseline) == (
        "watch",
        ("c1", "c2"),
        30,
        0,
    )
    sentence = verdict_sentence(
        outcome, candidate="new", baseline="old", say_minute=lambda minute: f"minute {minute}"
    )
    assert sentence == (
        "`forward` runs eager until its process restarts: it reached its recompile limit, "
        "on 2 instances of new since minute 30 and none of old."
    )


def test_a_fact_of_the_baseline_too_is_reported_and_changes_nothing():
    outcome = outcome_with(LATCHED, replace(LATCHED, arm="baseline", instance="b1"))
    assert outcome.verdict == "healthy"
    (fact,) = outcome.facts
    assert (fact.severity, fact.on_baseline) == ("known", 1)


def test_another_frame_than_the_baselines_is_new():
    outcome = outcome_with(LATCHED, replace(LATCHED, arm="baseline", instance="b1", about="encode"))
    assert outcome.verdict == "watch"


def test_facts_of_a_silent_version_give_no_verdict():
    calls = every_minute([instance(name) for name in NAMES], 90)
    outcome = judge(calls, now_minute=150, deployed_minute=0, known=JudgeContext(facts=(LATCHED,)))
    assert outcome.verdict == "not_enough_data"


def test_no_number_of_facts_is_a_roll_back():
    stuck = ObservedFact(
        "stuck_compiling",
        "candidate",
        "c1",
        30,
        "forward",
        "far longer than its longest compilation so far",
    )
    outcome = outcome_with(
        LATCHED, stuck, *(replace(LATCHED, instance=f"c{i}", about=f"f{i}") for i in range(20))
    )
    assert "roll_back" not in {verdict for _, verdict in outcome.transitions}


@pytest.mark.parametrize(("last_minute", "verdict"), [(20, "healthy"), (40, "watch")])
def test_an_out_of_memory_event_counts_for_an_hour(last_minute: int, verdict: str):
    rows = states(90, *(state(name) for name in NAMES))
    rows = [
        replace(row, ooms=int(row.instance == "c0" and row.minute in (10, last_minute)))
        for row in rows
    ]
    calls = every_minute([instance(name) for name in NAMES], 90)
    outcome = judge(calls, now_minute=90, deployed_minute=0, states=rows)
    assert outcome.verdict == verdict
    assert [(fact.kind, fact.count, fact.since) for fact in outcome.facts] == (
        [("out_of_memory", 2, 10)] if verdict == "watch" else []
    )


def test_the_order_of_facts_changes_nothing():
    facts = [
        LATCHED,
        replace(LATCHED, instance="c2", why="another reason"),
        ObservedFact("out_of_memory", "candidate", "c0", 5, until=40),
    ]
    assert group_certain_facts(facts, now_minute=60) == group_certain_facts(
        reversed(facts), now_minute=60
    )


def healthy(instances: list[SimulatedInstance]) -> None:
    for one in instances:
        one.rollout = replace(one.rollout, fault=Fault())


def current() -> Verdict:
    return Verdict.objects.get(current=True, deployment__version__name="2026.11.3")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("oom", {"text": "CUDA out of memory", "count": 2}, "the GPU ran out of memory 2 times"),
        (
            "parity",
            {"name": "golden batch", "ok": False, "text": "off by 0.2"},
            "compiled output of `golden batch` differs from eager: off by 0.2",
        ),
        (
            "latched_eager",
            {"frame": "merge_lists", "cause": "limit", "reason": "x.size(0) == 3"},
            "`merge_lists` runs eager until",
        ),
    ],
)
def test_a_fact_reported_by_an_agent_is_in_the_verdict(
    side_by_side: list[SimulatedInstance],
    send: Callable[..., None],
    kind: str,
    data: dict[str, Any],
    words: str,
):
    healthy(side_by_side)
    for one in side_by_side[:-1]:
        send(one)
    reporting = side_by_side[-1]
    plain = reporting.report

    def with_fact(*, seq: int, start: float, end: float) -> Report:
        report = plain(seq=seq, start=start, end=end)
        return replace(
            report, facts=[*report.facts, *([WireFact(kind, start, data)] if seq == 20 else [])]
        )

    reporting.report = with_fact  # type: ignore[method-assign]
    send(reporting)
    deployments_judge()
    verdict = current()
    assert verdict.kind == "watch"
    assert words.lower() in verdict.sentence.lower()
    assert [len(fact["instances"]) for fact in verdict.evidence["facts"]] == [1]


@pytest.mark.django_db
def test_without_a_fact_the_same_fleet_is_not_watched(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
):
    healthy(side_by_side)
    for one in side_by_side:
        send(one)
    deployments_judge()
    verdict = current()
    assert (verdict.kind, verdict.evidence["facts"]) == ("not_enough_data", [])


@pytest.mark.django_db
def test_an_instance_with_a_stuck_compilation_is_watched_while_it_reports(
    side_by_side: list[SimulatedInstance], send: Callable[..., None], time_is: Clock
):
    healthy(side_by_side)
    for one in side_by_side:
        send(one)
    stuck = side_by_side[-1].identity.id
    Instance.objects.filter(instance_id=stuck).update(
        compiling_for=1000.0, compiling_frame="forward"
    )
    deployments_judge()
    verdict = current()
    assert verdict.kind == "watch" and "`forward` is stuck compiling" in verdict.sentence
    assert [fact["instances"] for fact in verdict.evidence["facts"]] == [[stuck]]
    # No call for forty minutes, but the process reports, so it is not silent.
    time_is.minute += 40
    Instance.objects.filter(instance_id=stuck).update(
        last_minute=time_is.minute, compiling_for=3400.0
    )
    deployments_judge()
    assert current().kind == "watch"


@pytest.mark.django_db
def test_one_version_name_in_two_environments_is_evaluated_in_each(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
):
    for one in side_by_side:
        send(one)
    healthy(side_by_side)
    for number, one in enumerate(side_by_side):
        one.identity = replace(one.identity, id=instance_id(900 + number), environment="elsewhere")
        send(one)
    deployments_judge()
    said = Verdict.objects.filter(current=True, deployment__version__name="2026.11.3")
    kinds = dict(said.values_list("deployment__environment", "kind"))
    assert kinds.pop("elsewhere") == "not_enough_data" and list(kinds.values()) == ["roll_back"]
