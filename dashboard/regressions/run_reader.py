"""Run reader: the runs of a version that is a short job, and the runs of earlier versions that it
is compared with.

A version is a short job if the runs of its baseline have ended before most of it began, last less
than SHORT_RUN_MINUTES or train, and if nothing could be compared in another layout. The baseline
has the newest MOST_RUNS runs of the last MAX_AGE_DAYS days:

- versions with a ROLL BACK verdict are excluded, unless an operator accepted them;
- after a pinned version, only its runs; after an accepted one, the runs since then;
- the version that the judge selected as the baseline is always included;
- runs on the candidate's hosts alone, if there are enough of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import cast

from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judge_inputs.excluded_minutes import read_excluded_minutes
from dashboard.fleet.selectors.judge_inputs.execution_modes import read_mode_changes
from dashboard.fleet.selectors.judge_inputs.judge_minutes import Arm, JudgedMinute
from dashboard.fleet.selectors.judge_inputs.run_minutes import (
    StoredRun,
    list_runs,
    read_run_minutes,
)
from dashboard.regressions.baseline_choices import ACCEPT, PIN
from dashboard.regressions.judge.comparison import Comparison
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.not_compared import judged_levels
from dashboard.regressions.judge.runs.comparison import LEAST_RUNS, RunComparison
from dashboard.regressions.judge.runs.run import RUN_MINUTES, Run
from dashboard.regressions.judge.stall_coverage import StallCoverage, align_rows, downgrade_columns
from dashboard.regressions.models import BaselineChoice, Verdict, VerdictKind

SHORT_RUN_MINUTES = 180
"""From this length on, a version can be compared with the past of its hosts."""
MAX_AGE_DAYS = 30
MOST_RUNS = 20
RUNS_PER_VERSION = 4
"""Runs of one version before those of older versions are taken."""
MOST_VERSIONS = 40
MOST_PROCESSES = 400


def read_run_comparison(
    *,
    comparison: Comparison,
    deployment: Deployment,
    baseline: Deployment,
    earlier: Sequence[Deployment],
    now_minute: int,
) -> RunComparison | None:
    """The runs of the deployment's version and of earlier ones; None if the version is no short
    job, or if it is compared in another layout."""
    settings = comparison.settings
    compared = max((series.matched_minutes for _, series in judged_levels(comparison)), default=0)
    overlap = baseline.last_minute - deployment.started_minute
    if compared >= settings.matched_minutes or overlap >= settings.matched_minutes:
        return None
    if baseline.version_id == deployment.version_id:
        return None
    own, before = _list_pair(deployment, baseline, now_minute)
    if not own or not before or not all(map(is_short, (own, before))):
        return None
    if not all(run.ended for run in before):
        return None
    versions = list_versions(deployment, baseline, earlier)
    found = _list(deployment, [id for id in versions if id != baseline.version_id], now_minute)
    chosen, same_host = choose_runs(own, before, found)
    sides: list[tuple[Arm, StoredRun]] = [
        *(("baseline", run) for run in chosen),
        *(("candidate", run) for run in own),
    ]
    names = versions | {deployment.version_id: deployment.version.name}
    return _build(comparison, deployment, baseline, sides, same_host, names, now_minute)


def is_short(runs: Collection[StoredRun]) -> bool:
    """True if these runs are jobs: they last for less than SHORT_RUN_MINUTES, or they train."""
    return all(run.kind == "training" for run in runs) or (
        median(run.minutes for run in runs) < SHORT_RUN_MINUTES
    )


def list_versions(
    deployment: Deployment, baseline: Deployment, earlier: Sequence[Deployment]
) -> dict[int, str]:
    """Names of the versions whose runs may be in the baseline, by id: the selected baseline first,
    then the newest."""
    oldest = deployment.started_minute - MAX_AGE_DAYS * 1440
    others = [
        other
        for other in reversed(earlier)
        if other.version_id != deployment.version_id and other.last_minute >= oldest
    ]
    choice = (
        BaselineChoice.objects.filter(
            model_id=deployment.model_id, environment=deployment.environment, ended_at=None
        )
        .exclude(version_id=deployment.version_id)
        .first()
    )
    if choice is not None and choice.kind == PIN:
        others = [other for other in others if other.version_id == choice.version_id]
    elif choice is not None:
        since = [o.started_minute for o in others if o.version_id == choice.version_id]
        others = [o for o in others if o.started_minute >= min(since, default=0)]
    bad = list_bad_versions(others)
    names = {baseline.version_id: baseline.version.name}
    for other in others:
        if other.version_id not in bad and len(names) < MOST_VERSIONS:
            names.setdefault(other.version_id, other.version.name)
    return names


def list_bad_versions(deployments: Iterable[Deployment]) -> set[int]:
    """Versions with a current ROLL BACK verdict that no operator accepted."""
    versions = {other.pk: other.version_id for other in deployments}
    bad = {
        versions[pk]
        for pk in Verdict.objects.filter(
            deployment_id__in=list(versions), current=True, kind=VerdictKind.ROLL_BACK
        ).values_list("deployment_id", flat=True)
    }
    accepted = BaselineChoice.objects.filter(version_id__in=bad, kind=ACCEPT)
    return bad - set(accepted.values_list("version_id", flat=True)) if bad else bad


def choose_runs(
    own: Sequence[StoredRun], before: Sequence[StoredRun], found: Sequence[StoredRun]
) -> tuple[list[StoredRun], bool]:
    """The runs of the baseline, newest first, and whether all of them are on the candidate's hosts.
    Runs that continue are not in the baseline."""
    newest = sorted(
        [run for run in (*before, *found) if run.ended], key=lambda run: -run.first_minute
    )
    hosts = {run.host for run in own}
    here = [run for run in newest if run.host in hosts]
    same_host = "" not in hosts and len(here) >= LEAST_RUNS
    newest = here if same_host else newest
    counts: Counter[int] = Counter()
    first: list[StoredRun] = []
    more: list[StoredRun] = []
    for run in newest:
        counts[run.version_id] += 1
        (first if counts[run.version_id] <= RUNS_PER_VERSION else more).append(run)
    return [*first, *more][:MOST_RUNS], same_host


def _list_pair(
    deployment: Deployment, baseline: Deployment, now_minute: int
) -> tuple[list[StoredRun], list[StoredRun]]:
    pair = _list(deployment, [deployment.version_id, baseline.version_id], now_minute)
    return (
        [run for run in pair if run.version_id == deployment.version_id][:MOST_RUNS],
        [run for run in pair if run.version_id == baseline.version_id],
    )


def _list(deployment: Deployment, version_ids: Collection[int], now_minute: int) -> list[StoredRun]:
    return list_runs(
        project_id=deployment.project_id,
        version_ids=version_ids,
        environment=deployment.environment,
        from_minute=deployment.started_minute - MAX_AGE_DAYS * 1440,
        now_minute=now_minute,
        limit=MOST_PROCESSES,
    )


def _build(
    comparison: Comparison,
    deployment: Deployment,
    baseline: Deployment,
    sides: Sequence[tuple[Arm, StoredRun]],
    same_host: bool,
    names: Mapping[int, str],
    now_minute: int,
) -> RunComparison:
    by_unit = _read_rows(deployment, baseline, sides, now_minute)
    runs = name_runs(
        [
            Run(
                run.unit,
                names[run.version_id],
                arm,
                run.first_minute,
                run.ended,
                tuple(by_unit.get(run.unit, ())),
                run.host,
            )
            for arm, run in sides
        ]
    )
    return RunComparison(
        [run for run in runs if run.arm == "candidate"],
        [run for run in runs if run.arm == "baseline"],
        comparison.settings,
        same_host=same_host,
    )


def _read_rows(
    deployment: Deployment,
    baseline: Deployment,
    sides: Sequence[tuple[Arm, StoredRun]],
    now_minute: int,
) -> dict[str, list[InstanceMinute]]:
    """The rows of each run, without minutes under a command of the kill switch."""
    rows = read_run_minutes(
        project_id=deployment.project_id,
        environment=deployment.environment,
        runs=sides,
        minutes=RUN_MINUTES,
        now_minute=now_minute,
        changed=read_mode_changes(deployment=deployment, baseline=baseline),
    )
    switched = read_excluded_minutes(
        deployment=deployment,
        baseline=baseline,
        from_minute=min(run.first_minute for _, run in sides),
        to_minute=now_minute,
    )
    found: dict[str, list[InstanceMinute]] = {}
    for row in align_agents(rows):
        if row.outermost and row.minute not in switched.get(str(row.instance), ()):
            found.setdefault(str(row.unit), []).append(row)
    return found


def align_agents(rows: Sequence[JudgedMinute]) -> list[InstanceMinute]:
    """The rows without values that only some of the agents report."""
    # A row of the fleet has every field that the judge reads.
    found, telling = cast(list[InstanceMinute], rows), StallCoverage()
    telling.record_rows(found)
    return align_rows(
        found,
        telling.silent,
        lambda row: cast(
            InstanceMinute, cast(JudgedMinute, row)._replace(**downgrade_columns(row))
        ),
    )


def name_runs(runs: Sequence[Run]) -> list[Run]:
    """The runs with names that people can read: version and number, in the order of their start."""
    counts: Counter[str] = Counter()
    found = {}
    for run in sorted(runs, key=lambda run: (run.first_minute, run.unit)):
        counts[run.version] += 1
        found[run.unit] = replace(run, unit=f"{run.version} run {counts[run.version]}")
    return [found[run.unit] for run in runs]
