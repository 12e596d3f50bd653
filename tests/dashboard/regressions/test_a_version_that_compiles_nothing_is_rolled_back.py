"""A version that requests compilation and compiles nothing is ROLL BACK if its baseline served the
region compiled, otherwise WATCH."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from compilewatch.recording.compile_requests import (
    FINDING_TEXT,
    WHY_DROPPED,
    WHY_FAILED,
    WHY_SKIPPED,
)
from compilewatch.wire.messages import Fact as WireFact
from compilewatch.wire.messages import Finding, Report

from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.models import Finding as StoredFinding
from dashboard.regressions.judge import JudgeContext, judge
from dashboard.regressions.judge.certain_facts import ObservedFact, group_certain_facts
from dashboard.regressions.judge.text.verdict import first_version_sentence, verdict_sentence
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.fact_lines import fact_lines
from tests.dashboard.regressions.conftest import Clock
from tests.dashboard.regressions.fleets import every_minute, instance
from tests.dashboard.regressions.test_certain_facts_ask_for_watch_at_most import healthy
from tests.dashboard.regressions.test_processes_are_judged_like_regions import NAMES

WHY = "compilation was requested, but no call ran compiled"
NOTHING = ObservedFact("compiled_nothing", "candidate", "c1", 30, "forward", WHY)
SERVED = ObservedFact("compiled_nothing", "baseline", "", 0, "forward", passed=True)
OLD, NEW = "2026.11.2", "2026.11.3"


def verdict_and_sentence(*facts: ObservedFact) -> tuple[str, str]:
    outcome = judge(
        every_minute([instance(name) for name in NAMES], 90),
        now_minute=90,
        deployed_minute=0,
        known=JudgeContext(facts=facts),
    )
    return outcome.verdict, verdict_sentence(
        outcome, candidate="new", baseline="old", say_minute=lambda minute: f"minute {minute}"
    )


def test_it_is_roll_back_if_the_baseline_served_the_region_compiled_and_otherwise_watch() -> None:
    roll_back, sentence = verdict_and_sentence(NOTHING, SERVED)
    assert roll_back == "roll_back"
    assert (
        sentence
        == f"Roll back new: `forward` compiled nothing: {WHY}, on an instance of new since "
        "minute 30; old ran it compiled."
    )
    watch, sentence = verdict_and_sentence(NOTHING, replace(SERVED, about="another region"))
    assert watch == "watch" and sentence.endswith(
        "since minute 30; old ran no call of it compiled."
    )
    known, _ = verdict_and_sentence(
        NOTHING, SERVED, replace(NOTHING, arm="baseline", instance="b1")
    )
    assert known == "healthy", "the baseline has instances that compile nothing too"


def test_a_first_version_that_compiles_nothing_is_watched() -> None:
    (fact,) = group_certain_facts([NOTHING], now_minute=60)
    sentence = first_version_sentence(fact, candidate="new", say_minute=str)
    assert sentence == f"`forward` compiled nothing: {WHY}, on an instance of new since 30."


def compile_nothing(one: SimulatedInstance, *, as_fact: bool = False, **counts: Any) -> None:
    """Makes every call of the instance run without compiled code, and its agent report this
    once."""
    plain = one.report

    def changed(*, seq: int, start: float, end: float) -> Report:
        report = plain(seq=seq, start=start, end=end)
        for region in report.regions:
            region.compiled, region.partial, region.eager_by = 0, 0, {}
            region.unknown = 0 if counts.get("cause") else region.calls
            region.runtime = str(counts.get("runtime", region.runtime))
            if counts.get("cause"):
                region.eager_by = {counts["cause"]: region.calls}
        name = report.regions[0].name if report.regions else ""
        text = str(
            counts.get("text", "{region}: torch.compile was called, and no call met compiled code")
        ).format(region=name)
        if seq == 20 and as_fact:
            report.facts.append(WireFact("compiled_nothing", start, {"region": name, "text": text}))
        elif seq == 20:
            report.findings.append(
                Finding("compiled_nothing", text, where=str(counts.get("where", "")))
            )
        return report

    one.report = changed  # type: ignore[method-assign]


def verdict() -> Verdict:
    return Verdict.objects.get(current=True, deployment__version__name=NEW)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("cause", "as_fact", "runtime"),
    [
        ("no_graph", False, "torch.compile"),
        ("", False, "torch.compile"),
        ("", True, "torch.compile"),
        ("", False, "eager"),
    ],
)
def test_a_reported_region_without_compiled_calls_is_a_roll_back_with_its_cause(
    side_by_side: list[SimulatedInstance],
    send: Callable[..., None],
    cause: str,
    as_fact: bool,
    runtime: str,
) -> None:
    healthy(side_by_side)
    for one in side_by_side:
        if one.identity.version == NEW:
            compile_nothing(one, cause=cause, as_fact=as_fact, runtime=runtime)
        send(one)
    deployments_judge()
    found = verdict()
    region = side_by_side[-1].model.region
    assert found.kind == "roll_back"
    assert found.cause == f"`{region}` compiled nothing: {WHY}"
    assert f"on 3 instances of {NEW}" in found.sentence and found.sentence.endswith(
        f"{OLD} ran it compiled."
    )
    assert select_strongest_evidence(found.evidence)[0]["name"] == "Compiled nothing"
    (line,) = fact_lines(found.evidence)
    assert (line.mark, line.where) == (
        "roll_back",
        "on 3\u00a0instances, served compiled on the baseline",
    )
    (stored,) = StoredFinding.objects.filter(kind="compiled_nothing")
    assert region in stored.text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("why", "words"),
    [
        (WHY_DROPPED, "its calls do not go through what torch.compile made"),
        (WHY_FAILED, "each compilation failed, and the error was swallowed"),
        (WHY_SKIPPED, "torch skips the function, and finds no graph in it"),
    ],
)
@pytest.mark.parametrize(
    ("where", "place"), [("ranker/serve.py:28", " (ranker/serve.py:28)"), ("", "")]
)
def test_the_cause_and_its_place_come_from_the_agents(
    side_by_side: list[SimulatedInstance],
    send: Callable[..., None],
    why: str,
    words: str,
    where: str,
    place: str,
) -> None:
    healthy(side_by_side)
    for one in side_by_side:
        if one.identity.version == NEW:
            compile_nothing(
                one, runtime="eager", text=FINDING_TEXT.replace("{why}", why), where=where
            )
        send(one)
    deployments_judge()
    region = side_by_side[-1].model.region
    assert verdict().cause == f"`{region}` compiled nothing: {words}{place}"
    assert f"{words}{place}, on 3 instances of {NEW}" in verdict().sentence


@pytest.mark.django_db
def test_a_region_that_runs_compiled_after_all_ends_the_fact(
    side_by_side: list[SimulatedInstance], send: Callable[..., None], time_is: Clock
) -> None:
    healthy(side_by_side)
    for one in side_by_side:
        plain = one.report
        if one.identity.version == NEW:
            compile_nothing(one)
        send(one, last=22)
        one.report = plain  # type: ignore[method-assign]
        send(one, first=23)
    deployments_judge()
    assert verdict().kind != "roll_back" and "compiled nothing" not in verdict().sentence
    assert StoredFinding.objects.filter(kind="compiled_nothing").exists()
