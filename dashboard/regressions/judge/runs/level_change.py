"""Level change: one level of the candidate's runs against the runs of earlier versions.

Algorithm: a random-effects model with two levels, sessions and runs (`run.assign_sessions`). Each
run has one number: its mean log level in each cell, less the baseline's mean there, averaged over
buckets with the weight of the baseline's calls. With `n` runs in a session, the variance of the
session's mean is

    variance * (SESSION_SHARE + (1 - SESSION_SHARE) / n)

where `variance` is that of a single run. Sessions are weighted by the inverse. The variance is the
larger of two estimates, each shrunk towards the prior: from the means of the baseline's sessions,
and from all runs. The first one is right for any true share if the sessions of both versions have
as many runs; the second one is needed if there are few sessions.

The interval uses the t distribution, as in the moderated t-statistic, with a prior of few degrees
of freedom: quiet and crowded environments differ more than fleets do.

Invariants: positive is worse; the unit is the run; the result does not depend on the order of
runs; more strata do not reduce the variance that the runs of a session share.

Source: one-way random-effects analysis of variance (Searle, Casella and McCulloch, Variance
Components, 1992); Smyth, 2004, for the shrinkage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dashboard.regressions.judge.buckets import separates
from dashboard.regressions.judge.inputs import CellKey, Stratum
from dashboard.regressions.judge.pooled_estimate import t_quantile
from dashboard.regressions.judge.runs.run import SteadyRun
from dashboard.regressions.judge.settings import RatioMetric, Settings

SESSION_SHARE = 0.5
"""Share of the variance of a run that all runs of its session have in common."""
RUN_PRIOR_DF = 4
RUN_VARIANCE = {
    "p50": 0.06**2,
    "gpu_p50": 0.04**2,
    "throughput": 0.06**2,
    "p99": 0.09**2,
    "gpu_p99": 0.06**2,
}
"""Variance between runs before any run was seen. On one machine, 14 processes of torch.compile that
followed each other had a standard deviation of 0.079 (p50) and 0.120 (p99) on a CPU that another
job shared, and of 0.015 and 0.030 on an H200."""
DEFAULT_VARIANCE = 0.06**2

Runs = Mapping[str, float]
"""One number per run, by its name."""


class RunGroup(NamedTuple):
    """One stratum: the mean difference of every run, the arms' means, and `k`, the variance of
    their difference per unit of variance of a run."""

    stratum: Stratum
    baseline: Runs
    candidate: Runs
    baseline_mean: float
    candidate_mean: float
    k: float

    @property
    def delta(self) -> float:
        """The change within the stratum."""
        return self.candidate_mean - self.baseline_mean


@dataclass(frozen=True)
class CellLevels:
    """The log level of every run in one cell, with the baseline's calls there."""

    baseline: dict[str, float]
    candidate: dict[str, float]
    calls: int
    bounds: tuple[float, ...] | None

    @property
    def baseline_mean(self) -> float:
        """The baseline's mean level."""
        return math.fsum(self.baseline.values()) / len(self.baseline)


@dataclass(frozen=True)
class LevelChange:
    """The change of one level in one region, on the log scale; positive is worse."""

    metric: RatioMetric
    region: str
    delta: float
    error: float
    df: int
    groups: tuple[RunGroup, ...]
    cells: dict[CellKey, CellLevels]

    def margin(self, tail: float) -> float:
        """Half the width of the interval with probability `tail` in each tail."""
        return t_quantile(self.df, tail) * self.error

    @property
    def baseline_runs(self) -> int:
        """Number of the baseline's runs."""
        return len({run for group in self.groups for run in group.baseline})

    @property
    def candidate_runs(self) -> int:
        """Number of the candidate's runs."""
        return len({run for group in self.groups for run in group.candidate})

    @property
    def level(self) -> float:
        """The baseline's log level, weighted as in the change."""
        terms, weights = [], []
        for group in self.groups:
            for (stratum, _), cell in self.cells.items():
                if stratum == group.stratum:
                    weights.append(cell.calls / group.k)
                    terms.append(weights[-1] * cell.baseline_mean)
        return math.fsum(terms) / math.fsum(weights)

    def is_beyond_every_run(self, margin: float) -> bool:
        """True if each candidate run is above each run of the baseline by the margin."""
        return all(
            min(group.candidate.values()) - max(group.baseline.values()) > margin
            for group in self.groups
        )

    @property
    def is_alone(self) -> bool:
        """True if one of several candidate runs accounts for more than half of the change."""
        values: dict[str, list[float]] = {}
        for group in self.groups:
            for run, value in group.candidate.items():
                values.setdefault(run, []).append(value - group.baseline_mean)
        rest = sorted(math.fsum(found) / len(found) for found in values.values())[:-1]
        return bool(rest) and math.fsum(rest) / len(rest) < self.delta / 2

    @property
    def is_within_bucket(self) -> bool:
        """True if an engine's buckets hide the change in all cells."""
        sign, known = self.metric.worse, list(self.cells.values())
        return all(
            cell.bounds is not None
            and not separates(
                sign * cell.baseline_mean, sign * (cell.baseline_mean + self.delta), cell.bounds
            )
            for cell in known
        )


def compare_levels(
    metric: RatioMetric,
    region: str,
    runs: Sequence[SteadyRun],
    sessions: Mapping[str, str],
    settings: Settings,
) -> LevelChange | None:
    """The change of a level; None if no cell has it in runs of both versions."""
    cells = collect_cells(metric, region, runs, settings)
    return estimate_change(metric, region, cells, sessions) if cells else None


def split_by_run(change: LevelChange, sessions: Mapping[str, str]) -> list[LevelChange]:
    """The change of each run of the candidate alone, with a variance from the baseline only."""
    units = sorted({run for group in change.groups for run in group.candidate})
    return [
        estimate_change(
            change.metric,
            change.region,
            {
                key: replace(cell, candidate={unit: cell.candidate[unit]})
                for key, cell in change.cells.items()
                if unit in cell.candidate
            },
            sessions,
        )
        for unit in units
    ]


def estimate_change(
    metric: RatioMetric,
    region: str,
    cells: dict[CellKey, CellLevels],
    sessions: Mapping[str, str],
) -> LevelChange:
    """The change over cells that both versions have, at least one."""
    strata: dict[Stratum, list[CellLevels]] = {}
    for (stratum, _), cell in sorted(cells.items(), key=lambda item: repr(item[0])):
        strata.setdefault(stratum, []).append(cell)
    groups = [make_group(stratum, found, sessions) for stratum, found in strata.items()]
    variance, df = pool_variance(groups, sessions, RUN_VARIANCE.get(metric.name, DEFAULT_VARIANCE))
    weight = math.fsum(1.0 / group.k for group in groups)
    delta = math.fsum(group.delta / group.k for group in groups) / weight
    k = max(1.0 / weight, SESSION_SHARE * min(group.k for group in groups))
    return LevelChange(metric, region, delta, math.sqrt(variance * k), df, tuple(groups), cells)


def collect_cells(
    metric: RatioMetric, region: str, runs: Sequence[SteadyRun], settings: Settings
) -> dict[CellKey, CellLevels]:
    """The levels of all runs by cell, of the cells that both versions have."""
    found: dict[CellKey, CellLevels] = {}
    for steady in runs:
        arm = steady.run.arm
        for key, (level, samples, bounds) in read_levels(metric, region, steady).items():
            if samples < settings.bin_calls:
                continue
            cell = found.get(key) or CellLevels({}, {}, 0, bounds if metric.of_buckets else None)
            side = cell.baseline if arm == "baseline" else cell.candidate
            side[steady.run.unit] = level
            calls = cell.calls + (samples if arm == "baseline" else 0)
            found[key] = CellLevels(cell.baseline, cell.candidate, calls, cell.bounds)
    return {key: cell for key, cell in found.items() if cell.baseline and cell.candidate}


def read_levels(
    metric: RatioMetric, region: str, steady: SteadyRun
) -> dict[CellKey, tuple[float, int, tuple[float, ...] | None]]:
    """The mean log level of a run in each cell, its samples, and the bounds of an engine."""
    terms: dict[CellKey, list[float]] = {}
    counts: dict[CellKey, int] = {}
    bounds: dict[CellKey, tuple[float, ...] | None] = {}
    for row in steady.rows:
        value, samples = metric.value(row), metric.samples(row)
        if row.region != region or value is None or samples <= 0 or not 0.0 < value < math.inf:
            continue
        key = (row.stratum, row.bucket)
        terms.setdefault(key, []).append(metric.worse * samples * math.log(value))
        counts[key] = counts.get(key, 0) + samples
        bounds[key] = row.bounds
    return {
        key: (math.fsum(found) / counts[key], counts[key], bounds[key])
        for key, found in terms.items()
    }


def make_group(
    stratum: Stratum, cells: Sequence[CellLevels], sessions: Mapping[str, str]
) -> RunGroup:
    """The group of one stratum."""
    base = average_by_run([(cell, cell.baseline) for cell in cells])
    cand = average_by_run([(cell, cell.candidate) for cell in cells])
    (base_mean, base_k), (cand_mean, cand_k) = (
        average_sessions(group_by_session(runs, sessions)) for runs in (base, cand)
    )
    return RunGroup(stratum, base, cand, base_mean, cand_mean, base_k + cand_k)


def average_by_run(cells: Sequence[tuple[CellLevels, Runs]]) -> dict[str, float]:
    """The mean difference of each run from the baseline's mean, over buckets."""
    sums: dict[str, list[float]] = {}
    for cell, runs in cells:
        for run, level in runs.items():
            entry = sums.setdefault(run, [0.0, 0.0])
            entry[0] += cell.calls * (level - cell.baseline_mean)
            entry[1] += cell.calls
    return {run: total / weight for run, (total, weight) in sums.items()}


def group_by_session(runs: Runs, sessions: Mapping[str, str]) -> list[list[float]]:
    """The numbers of each session."""
    found: dict[str, list[float]] = {}
    for run in sorted(runs):
        found.setdefault(sessions[run], []).append(runs[run])
    return list(found.values())


def session_variance(runs: int) -> float:
    """Variance of the mean of a session, per unit of variance of a run."""
    return SESSION_SHARE + (1.0 - SESSION_SHARE) / runs


def average_sessions(sessions: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The weighted mean of an arm's sessions, and its variance per unit of variance of a run."""
    weights = [1.0 / session_variance(len(runs)) for runs in sessions]
    total = math.fsum(weights)
    means = [math.fsum(runs) / len(runs) for runs in sessions]
    return math.fsum(w * mean for w, mean in zip(weights, means, strict=True)) / total, 1.0 / total


def pool_variance(
    groups: Sequence[RunGroup], sessions: Mapping[str, str], prior: float
) -> tuple[float, int]:
    """Variance of a run with its degrees of freedom: the larger of the estimate from the baseline's
    sessions and the one from all runs."""
    between = within = 0.0
    session_df = run_df = 0
    for group in groups:
        base = group_by_session(group.baseline, sessions)
        for runs in base:
            mean = math.fsum(runs) / len(runs)
            between += (mean - group.baseline_mean) ** 2 / session_variance(len(runs))
        session_df += len(base) - 1
        for runs in (*base, *group_by_session(group.candidate, sessions)):
            mean = math.fsum(runs) / len(runs)
            within += math.fsum((value - mean) ** 2 for value in runs) / (1.0 - SESSION_SHARE)
            run_df += len(runs) - 1
    shrunk = RUN_PRIOR_DF * prior
    of_sessions = (shrunk + between) / (RUN_PRIOR_DF + session_df), RUN_PRIOR_DF + session_df
    run_df += session_df
    of_runs = (shrunk + between + within) / (RUN_PRIOR_DF + run_df), RUN_PRIOR_DF + run_df
    return max(of_sessions, of_runs)
