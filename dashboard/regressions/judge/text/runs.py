"""Run text: phrases of verdicts on short jobs, which compare runs."""

from __future__ import annotations

from dashboard.regressions.judge.result import NextStep, Outcome, RunsCompared
from dashboard.vocabulary.numbers import SPACE, magnitude, plural

ONE_MORE_RUN = "run it once more to confirm"


def describe_runs(runs: RunsCompared) -> str:
    """The baseline of a run comparison: `the last 12 runs of 9 earlier versions`."""
    count = sum(run.arm == "baseline" for run in runs.runs)
    of = runs.versions[0] if len(runs.versions) == 1 else f"{len(runs.versions)} earlier versions"
    last = "the last run" if count == 1 else f"the last {count} runs"
    return f"{last} of {of}{' (same host)' if runs.same_host else ''}"


def name_baseline(outcome: Outcome, baseline: str) -> str:
    """The baseline, or its runs if runs are compared."""
    return describe_runs(outcome.runs) if outcome.runs and outcome.runs.versions else baseline


def is_single_run(outcome: Outcome) -> bool:
    """True if runs are compared and the version has only one."""
    return (
        bool(outcome.runs)
        and sum(run.arm == "candidate" for run in (outcome.runs.runs if outcome.runs else ())) == 1
    )


def run_reasons(outcome: Outcome, candidate: str) -> dict[str, str]:
    """What is missing for a comparison of runs, by reason."""
    if outcome.runs is None:
        return {}
    known = sum(run.arm == "baseline" for run in outcome.runs.runs)
    only = f"Only {plural(known, 'run')} of" if known else "No run of"
    return {
        "too_few_runs": f"{only} earlier versions can be compared with {candidate}.",
        "run_in_progress": f"{candidate} is running; a run is compared after 5{SPACE}min without "
        "warm-up, or at its end.",
        "run_too_short": f"No run of {candidate} has 20 calls of one shape after warm-up.",
    }


def more_runs_phrase(step: NextStep) -> str:
    """The runs that are missing, or what one more run would show."""
    if step.arm == "baseline":
        return f"{plural(step.count, 'more run')} {'is' if step.count == 1 else 'are'} needed."
    visible = f"changes down to {magnitude(step.visible)}" if step.visible else "smaller changes"
    return f"One more run detects {visible}."
