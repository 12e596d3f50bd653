"""Eager calls beyond their budget and beyond chance are a certain fact: WATCH unless the baseline
exceeds the budget too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.demo.simulated_fleet import Fault, SimulatedInstance
from dashboard.fleet.budgets import Budgets, budgets_set
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.instances.budget_burn import exceeds_budget, list_budget_burns
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange
from dashboard.fleet.selectors.versions.fleet_page import read_fleet
from dashboard.projects.models import Project
from dashboard.regressions.judge.certain_facts import (
    ObservedFact,
    describe_fact,
    group_certain_facts,
)
from tests.dashboard.regressions.conftest import NOW_MINUTE


@pytest.mark.parametrize(
    ("looked", "served", "budget", "burning"),
    [
        (199, 0, 0.995, False),  # too few calls
        (1000, 995, 0.995, False),
        (1000, 986, 0.995, False),  # more than twice the allowance, and still chance
        (1000, 980, 0.995, True),
        (100_000, 99_100, 0.995, False),  # certainly above the allowance, but not twice as much
        (100_000, 98_900, 0.995, True),
    ],
)
def test_a_budget_burns_if_neither_the_budget_nor_chance_explains_the_calls(
    looked: int, served: int, budget: float, burning: bool
) -> None:
    assert exceeds_budget(looked, served, budget) is burning


@pytest.mark.django_db
def test_only_burning_instances_are_reported_and_no_query_runs_without_a_budget(
    side_by_side: list[SimulatedInstance], send: Callable[..., None], project: Project
) -> None:
    pair = [side_by_side[0], side_by_side[-1]]
    for one, eager in zip(pair, (0.0, 0.04), strict=True):
        one.rollout = replace(one.rollout, fault=Fault(eager=eager))
        send(one)
    before, after = Deployment.objects.select_related("model", "project").order_by("started_minute")
    with CaptureQueriesContext(connection) as asked:
        assert list_budget_burns(deployment=after, now_minute=NOW_MINUTE) == []
    assert len(asked) == 0
    budgets_set(project=project, model=None, budgets=Budgets(served=0.995), actor_name="tests")
    before, after = Deployment.objects.select_related("model", "project").order_by("started_minute")
    assert list_budget_burns(deployment=before, now_minute=NOW_MINUTE) == []
    (row,) = list_budget_burns(deployment=after, now_minute=NOW_MINUTE)
    assert (row.kind, row.instance) == ("budget_burning", pair[1].identity.id)
    assert row.why.endswith(
        "of its calls ran compiled in half an hour (budget 99.5%)"
    ) and row.why.startswith("9")
    assert after.started_minute <= row.since <= after.started_minute + 3, (
        "it began with the second minute"
    )


def test_a_baseline_that_burns_too_makes_the_fact_known() -> None:
    fact = ObservedFact(
        "budget_burning",
        "candidate",
        "c1",
        30,
        "",
        "96% of its calls ran compiled in half an hour (budget 99.5%)",
    )
    (news,) = group_certain_facts([fact], now_minute=60)
    (known,) = group_certain_facts(
        [fact, replace(fact, arm="baseline", instance="b1")], now_minute=60
    )
    assert (news.severity, known.severity) == ("watch", "known")
    assert describe_fact(news).startswith("the budget of compiled calls is burning: 96%")


@pytest.mark.django_db
def test_a_call_that_waits_for_a_compilation_is_not_served_compiled(
    side_by_side: list[SimulatedInstance], send: Callable[..., None], project: Project
) -> None:
    instance = side_by_side[-1]
    instance.rollout = replace(instance.rollout, fault=Fault(stalled=0.25))
    send(instance)
    budgets_set(project=project, model=None, budgets=Budgets(served=0.995), actor_name="tests")
    deployment = Deployment.objects.select_related("model", "project").get()
    (row,) = list_budget_burns(deployment=deployment, now_minute=NOW_MINUTE)
    assert (row.kind, row.instance) == ("budget_burning", instance.identity.id)
    assert row.why.startswith("74.9% of its calls ran compiled")
    window = BinnedRange(NOW_MINUTE - 30, NOW_MINUTE, 15)
    facts = read_fleet(project=project, window=window).versions[deployment.version_id]
    assert (
        facts.compiled_share
        == pytest.approx(1 - (facts.stalled_share or 0))
        == pytest.approx(0.75, abs=0.02)
    )
    (p99,) = {round(point.p99 / point.weight, 1) for point in facts.points.values()}
    assert p99 == pytest.approx(facts.recent.quantile(0.99), abs=0.1) and p99 > 0.5
