"""Run text: phrases of verdicts on short jobs, which compare runs."""

from __future__ import annotations

from dashboard.regressions.judge.result import Outcome, Reason, RunsCompared
from dashboard.regressions.judge.runs.comparison import LEAST_RUNS
from dashboard.vocabulary.numbers import SPACE, plural


def describe_runs(runs: RunsCompared) -> str:
    """The baseline of a run comparison: `the last 12 runs of 9 earlier versions`."""
    count = sum(run.arm == "baseline" for run in runs.runs)
    of = runs.versions[0] if len(runs.versions) == 1 else f"{len(runs.versions)} earlier versions"
    last = "the last run" if count == 1 else f"the last {count} runs"
    return f"{last} of {of}{' (same host)' if runs.same_host else ''}"


def name_baseline(outcome: Outcome, baseline: str) -> str:
    """The baseline, or its runs if runs are compared."""
    return describe_runs(outcome.runs) if outcome.runs and outcome.runs.versions else baseline


def describe_missing_proof(outcome: Outcome) -> str:
    """What a change of runs lacks for ROLL BACK; empty if runs are not compared."""
    if outcome.runs is None:
        return ""
    if sum(run.arm == "candidate" for run in outcome.runs.runs) == 1:
        return "run it once more to confirm"
    if all(row.alone for row in outcome.evidence if row.drives and row.hard):
        return "one run accounts for most of it: run it once more"
    return "more evidence is needed to roll back"


def run_reasons(outcome: Outcome, candidate: str) -> dict[Reason, str]:
    """The data that a comparison of runs lacks, by reason."""
    if outcome.runs is None:
        return {}
    known = LEAST_RUNS - outcome.runs.missing
    only = f"Only {plural(known, 'run')} of" if known else "No run of"
    return {
        "too_few_runs": f"{only} earlier versions can be compared with {candidate}.",
        "run_in_progress": f"{candidate} is running; a run is compared after 5{SPACE}min without "
        "warm-up, or at its end.",
        "run_too_short": f"No run of {candidate} has 20 calls of one shape after warm-up.",
    }
