"""What the judge is told beside minutes: certain facts of instances, and what else differs between two versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from dashboard.fleet.budgets import STALLED, budgets_in
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.compilations.uncompiled_regions import nothing_compiled, regions_compiled
from dashboard.fleet.selectors.instances.budget_burn import burning_rows
from dashboard.fleet.selectors.judge_inputs.deterministic_facts import certain_instances, certain_rows, environments
from dashboard.regressions.judge.certain_facts import Fact, FactKind
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.environment_diff import environment_diff
from dashboard.regressions.judge.inputs import Arm
from dashboard.regressions.judge.result import Known
from dashboard.regressions.numerics_facts import parity_facts
from dashboard.regressions.rank_facts import rank_facts


def known_of(*, comparison: Comparison, deployment: Deployment, baseline: Deployment, now_minute: int) -> Known:
    """The facts as of now; environments are read again only when an instance joined."""
    facts = [
        *facts_of(deployment=deployment, arm="candidate", now_minute=now_minute),
        *facts_of(deployment=baseline, arm="baseline", now_minute=now_minute),
    ]
    facts = served_added(baseline=baseline, facts=facts)
    ran = comparison.process.instances
    seen = len(ran["baseline"]), len(ran["candidate"])
    if comparison.environment is None or comparison.environment[0] != seen:
        before = environments(deployment=baseline, instances=ran["baseline"])
        comparison.environment = seen, environment_diff(before, environments(deployment=deployment, instances=ran["candidate"]))
    return Known(tuple(facts), comparison.environment[1], stalled_budget_of(deployment))


def stalled_budget_of(deployment: Deployment) -> float:
    """The share of calls that may wait for a compilation; the usual one where none is set."""
    return budgets_in(deployment.model, deployment.project.settings).stalled or STALLED


def facts_of(*, deployment: Deployment, arm: Arm, now_minute: int) -> list[Fact]:
    """What is certain of one version's instances."""
    instances = certain_instances(deployment=deployment, now_minute=now_minute)
    rows = certain_rows(instances=instances)
    rows += burning_rows(deployment=deployment, now_minute=now_minute)
    rows += nothing_compiled(deployment=deployment, now_minute=now_minute)
    alone = [Fact(cast(FactKind, row.kind), arm, row.instance, row.since, row.about, row.why) for row in rows]
    return alone + parity_facts(deployment=deployment, arm=arm, now_minute=now_minute) + rank_facts(instances=instances, arm=arm)


def served_added(*, baseline: Deployment, facts: Iterable[Fact]) -> list[Fact]:
    """The facts, and of which regions the candidate compiled nothing and the baseline served compiled calls, as far as its agents can tell;
    no query where there are none."""
    known = list(facts)
    regions = {fact.about for fact in known if fact.kind == "compiled_nothing" and fact.arm == "candidate"}
    served = regions_compiled(deployment=baseline, regions=regions) if regions else {}
    found = [replace(fact, baseline_silent=True) if _untold(fact, served) else fact for fact in known]
    names = sorted(region for region, tells in served.items() if tells)
    return found + [Fact("compiled_nothing", "baseline", "", baseline.started_minute, region, passed=True) for region in names]


def _untold(fact: Fact, served: Mapping[str, bool]) -> bool:
    return fact.kind == "compiled_nothing" and fact.arm == "candidate" and not served.get(fact.about, True)
