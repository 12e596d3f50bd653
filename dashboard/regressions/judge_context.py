"""Judge context: the inputs of an evaluation other than minutes, namely confirmed facts of
instances and differences between two versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from dashboard.fleet.budgets import DEFAULT_STALLED_SHARE, resolve_budgets_with
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.compilations.uncompiled_regions import (
    list_uncompiled_regions,
    read_compiled_regions,
)
from dashboard.fleet.selectors.instances.budget_burn import list_budget_burns
from dashboard.fleet.selectors.judge_inputs.deterministic_facts import (
    list_certain_instances,
    read_certain_rows,
    read_environments,
)
from dashboard.regressions.judge.certain_facts import FactKind, ObservedFact
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.environment_diff import diff_environments
from dashboard.regressions.judge.inputs import Arm
from dashboard.regressions.judge.result import JudgeContext
from dashboard.regressions.numerics_facts import read_parity_facts
from dashboard.regressions.rank_facts import read_rank_facts


def read_judge_context(
    *, comparison: Comparison, deployment: Deployment, baseline: Deployment, now_minute: int
) -> JudgeContext:
    """The facts at `now_minute`; those of short jobs at the end of each version. Environments are
    read again only if an instance joined."""
    candidate_until = baseline_until = now_minute
    if comparison.runs is not None:
        candidate_until = min(now_minute, deployment.last_minute + 1)
        baseline_until = min(now_minute, baseline.last_minute + 1)
    facts = [
        *read_facts(deployment=deployment, arm="candidate", now_minute=candidate_until),
        *read_facts(deployment=baseline, arm="baseline", now_minute=baseline_until),
    ]
    facts = add_compiled_regions(baseline=baseline, facts=facts)
    ran = comparison.process.instances
    seen = len(ran["baseline"]), len(ran["candidate"])
    if comparison.environment is None or comparison.environment[0] != seen:
        before = read_environments(deployment=baseline, instances=ran["baseline"])
        comparison.environment = (
            seen,
            diff_environments(
                before, read_environments(deployment=deployment, instances=ran["candidate"])
            ),
        )
    return JudgeContext(tuple(facts), comparison.environment[1], read_stall_budget(deployment))


def read_stall_budget(deployment: Deployment) -> float:
    """The share of calls that may wait for a compilation; the default budget if none is set."""
    return (
        resolve_budgets_with(deployment.model, deployment.project.settings).stalled
        or DEFAULT_STALLED_SHARE
    )


def read_facts(*, deployment: Deployment, arm: Arm, now_minute: int) -> list[ObservedFact]:
    """The confirmed facts of one version's instances."""
    instances = list_certain_instances(deployment=deployment, now_minute=now_minute)
    rows = read_certain_rows(instances=instances)
    rows += list_budget_burns(deployment=deployment, now_minute=now_minute)
    rows += list_uncompiled_regions(deployment=deployment, now_minute=now_minute)
    alone = [
        ObservedFact(cast(FactKind, row.kind), arm, row.instance, row.since, row.about, row.why)
        for row in rows
    ]
    return (
        alone
        + read_parity_facts(deployment=deployment, arm=arm, now_minute=now_minute)
        + read_rank_facts(instances=instances, arm=arm)
    )


def add_compiled_regions(
    *, baseline: Deployment, facts: Iterable[ObservedFact]
) -> list[ObservedFact]:
    """Adds the regions for which the candidate compiled nothing while the baseline served compiled
    calls, as far as its agents report. No query if there are no such facts."""
    known = list(facts)
    regions = {
        fact.about for fact in known if fact.kind == "compiled_nothing" and fact.arm == "candidate"
    }
    served = read_compiled_regions(deployment=baseline, regions=regions) if regions else {}
    found = [
        replace(fact, baseline_silent=True) if _is_unknown(fact, served) else fact for fact in known
    ]
    names = sorted(region for region, tells in served.items() if tells)
    return found + [
        ObservedFact(
            "compiled_nothing", "baseline", "", baseline.started_minute, region, passed=True
        )
        for region in names
    ]


def _is_unknown(fact: ObservedFact, served: Mapping[str, bool]) -> bool:
    return (
        fact.kind == "compiled_nothing"
        and fact.arm == "candidate"
        and not served.get(fact.about, True)
    )
