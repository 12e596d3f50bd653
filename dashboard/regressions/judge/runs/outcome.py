"""Run outcome: the outcome of a comparison whose verdict follows from single runs.

Confirmed facts and processes keep their part: the verdict is the more severe one of theirs and of
the runs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dashboard.regressions.judge.certain_facts import CertainFact
from dashboard.regressions.judge.evidence import limit_dots
from dashboard.regressions.judge.inputs import CellKey, stratum_name
from dashboard.regressions.judge.pooled_estimate import log_to_change
from dashboard.regressions.judge.result import (
    Confidence,
    Evidence,
    NextStep,
    NotCompared,
    Outcome,
    RunsCompared,
    RunSummary,
)
from dashboard.regressions.judge.runs.comparison import RunComparison
from dashboard.regressions.judge.runs.evidence import build_run_evidence, count_steady_minutes
from dashboard.regressions.judge.runs.level_change import LevelChange
from dashboard.regressions.judge.runs.run import SteadyRun, key_of
from dashboard.regressions.judge.verdict_policy import Verdict

SEVERITY: tuple[Verdict, ...] = ("not_enough_data", "healthy", "watch", "roll_back")


def apply_runs(outcome: Outcome, runs: RunComparison) -> Outcome:
    """The outcome with the verdict, evidence and coverage of the runs."""
    processes = tuple(row for row in outcome.evidence if not row.region)
    apart = find_verdict_without_calls(outcome, processes)
    verdict = max(runs.verdict, apart, key=SEVERITY.index)
    rows = tuple(limit_dots(row) for row in build_run_evidence(runs))
    if verdict != runs.verdict:
        rows = tuple(replace(row, drives=False) for row in rows)
    known = apart if verdict == apart != "not_enough_data" else None
    since = outcome.since if known else find_last_minute(runs) or outcome.deployed_minute
    return replace(
        outcome,
        verdict=verdict,
        since=since,
        reason=runs.reason if verdict == "not_enough_data" else "",
        smallest_visible=max(
            (row.smallest_visible for row in rows if row.judged and row.smallest_visible),
            default=None,
        ),
        next_look=None,
        next_step=find_next_step(runs) if verdict in ("not_enough_data", "watch") else None,
        evidence=rows + processes,
        transitions=(
            *outcome.transitions[:1],
            *([(since, verdict)] if verdict != "not_enough_data" else []),
        ),
        **build_run_bounds(runs, verdict),
        **build_run_coverage(outcome, runs),
    )


def build_run_bounds(runs: RunComparison, verdict: Verdict) -> dict[str, Any]:
    """The fields of HEALTHY, and the intended confidence."""
    settings, bounds = runs.settings, find_bounds(runs) if verdict == "healthy" else {}
    return {
        "bounds": bounds,
        "bound": max(bounds.values(), default=None),
        "look": count_steady_minutes(runs) if bounds else None,
        "confidence": Confidence(settings.roll_back_alpha, settings.watch_alpha, runs.tests),
    }


def build_run_coverage(outcome: Outcome, runs: RunComparison) -> dict[str, Any]:
    """The fields that describe the data behind the outcome."""
    return {
        "compared_minutes": count_steady_minutes(runs),
        "layouts": ("run_against_run",),
        "comparable_share": runs.coverage.share,
        "not_compared": (
            *list_unmatched(runs),
            *(item for item in outcome.not_compared if item.share is None),
        ),
        "mix_shift": (),
        "low_adoption": False,
        "minor": (),
        "ended": (),
        "last_compared_minute": find_last_minute(runs),
        "runs": summarize_runs(runs),
    }


def find_verdict_without_calls(outcome: Outcome, processes: tuple[Evidence, ...]) -> Verdict:
    """The verdict that follows from processes and confirmed facts."""
    if any(row.drives for row in processes) or any(is_news(fact) for fact in outcome.facts):
        return outcome.verdict if outcome.verdict in ("watch", "roll_back") else "not_enough_data"
    return "not_enough_data"


def is_news(fact: CertainFact) -> bool:
    """True if the fact is new in the version."""
    return fact.severity != "known"


def find_last_minute(runs: RunComparison) -> int | None:
    """The last compared minute of the candidate."""
    return max((row.minute for steady in runs.candidate for row in steady.rows), default=None)


def find_bounds(runs: RunComparison) -> dict[str, float]:
    """The changes that the runs rule out, by metric; of several regions, the largest."""
    found: dict[str, float] = {}
    for change in runs.judged:
        if isinstance(change, LevelChange) and change.metric.hard:
            bound = math.expm1(change.delta + change.margin(runs.settings.healthy_alpha))
            name = change.metric.name
            found[name] = max(bound, found.get(name, bound))
    return found


def find_next_step(runs: RunComparison) -> NextStep | None:
    """The missing runs; None if only the end of the run is missing."""
    if runs.reason == "too_few_runs":
        return NextStep("add_runs", "baseline", "", runs.missing_runs, None, 0)
    if runs.reason in ("run_in_progress", "run_too_short", "no_common_stratum"):
        return None
    return NextStep("add_runs", "candidate", "", 1, find_visible(runs), 0)


def find_visible(runs: RunComparison) -> float | None:
    """The smallest detectable change of call time with one more run, in the least sensitive
    region."""
    found = []
    for change in runs.judged:
        if isinstance(change, LevelChange) and change.metric.leads:
            margin = change.margin(runs.tail(runs.settings.roll_back_alpha))
            base = min(group.k for group in change.groups)
            count = change.candidate_runs
            saved = (1.0 / count - 1.0 / (count + 1)) / 2
            found.append(log_to_change(margin * math.sqrt(max(base - saved, 0.0) / base)))
    return max(found, default=None)


def list_unmatched(runs: RunComparison) -> list[NotCompared]:
    """The candidate's cells without a run of the baseline, the largest share first."""
    known = {key_of(row) for steady in runs.baseline for row in steady.rows}
    strata = {(region, stratum) for region, (stratum, _) in known}
    calls: dict[tuple[str, CellKey], int] = {}
    for steady in runs.candidate:
        for row in steady.rows:
            calls[key_of(row)] = calls.get(key_of(row), 0) + row.calls
    found = [
        NotCompared(
            " · ".join(part for part in (region, stratum_name(stratum), bucket) if part),
            "no_run_in_bucket" if (region, stratum) in strata else "no_baseline_in_stratum",
            count / sum(calls.values()),
        )
        for (region, (stratum, bucket)), count in calls.items()
        if (region, (stratum, bucket)) not in known
    ]
    return sorted(found, key=lambda item: (-(item.share or 0.0), item.what))


def summarize_runs(runs: RunComparison) -> RunsCompared:
    """The compared runs, newest first, the candidate's before the baseline's."""
    newest = sorted(runs.baseline, key=lambda steady: -steady.run.first_minute)
    own = sorted(runs.candidate, key=lambda steady: -steady.run.first_minute)
    return RunsCompared(
        tuple(summarize_run(steady) for steady in (*own, *newest)),
        runs.versions,
        runs.ended,
        runs.same_host,
        runs.missing_runs,
    )


def summarize_run(steady: SteadyRun) -> RunSummary:
    """One run, with the number of excluded minutes."""
    run = steady.run
    return RunSummary(
        run.unit, run.version, run.arm, run.host, run.first_minute, steady.excluded, steady.minutes
    )
