"""Count change: a count of the candidate's runs as a rate, against the runs of earlier versions.

The rate and its interval are those of `rate_ratio`, with runs in place of instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.regressions.judge.inputs import Stratum
from dashboard.regressions.judge.rate_ratio import Rate, Sums, estimate_rate
from dashboard.regressions.judge.runs.level_change import RUN_PRIOR_DF
from dashboard.regressions.judge.runs.run import SteadyRun
from dashboard.regressions.judge.settings import AffectedMetric


@dataclass(frozen=True)
class RunCount:
    """Events and calls of one run in one stratum."""

    unit: str
    arm: str
    stratum: Stratum
    events: int
    calls: int

    @property
    def share(self) -> float:
        """The share of calls with events."""
        return self.events / self.calls


@dataclass(frozen=True)
class CountChange:
    """The change of one count in one region."""

    metric: AffectedMetric
    region: str
    rate: Rate
    runs: tuple[RunCount, ...]
    causes: dict[str, int]

    @property
    def baseline_runs(self) -> int:
        """Number of the baseline's runs."""
        return len({run.unit for run in self.runs if run.arm == "baseline"})

    @property
    def candidate_runs(self) -> int:
        """Number of the candidate's runs."""
        return len({run.unit for run in self.runs if run.arm == "candidate"})

    def rises(self, tail: float) -> bool:
        """True if the rate rose by at least the smallest effect, with this error probability."""
        rate = self.rate
        return (
            rate.events >= max(self.metric.least_events, self.metric.affected_events)
            and rate.matters(rate.delta, self.metric)
            and rate.delta > rate.margin(tail)
        )

    def is_tolerable(self, tail: float) -> bool:
        """True if the data rules out every rise that matters, or shows too few events for one."""
        rate = self.rate
        return rate.events < self.metric.least_events or not rate.matters(
            rate.delta + rate.margin(tail), self.metric
        )

    def is_higher(self, run: RunCount, base: float) -> bool:
        """True if a run of the candidate has a share that matters compared with this one."""
        return (
            run.arm == "candidate"
            and run.share >= self.metric.times * base
            and run.share - base >= self.metric.points
        )

    def is_beyond_every_run(self) -> bool:
        """True if each candidate run matters compared with the baseline's highest run."""
        base = max((run.share for run in self.runs if run.arm == "baseline"), default=0.0)
        return all(self.is_higher(run, base) for run in self.runs if run.arm == "candidate")


def compare_counts(
    metric: AffectedMetric, region: str, runs: Sequence[SteadyRun]
) -> CountChange | None:
    """The change of a count; None if no stratum has known calls of both versions."""
    found = [
        count for steady in runs for count in read_counts(metric, region, steady) if count.calls
    ]
    strata: dict[Stratum, Sums] = {}
    for count in found:
        sums = strata.setdefault(count.stratum, Sums())
        if count.arm == "baseline":
            sums.base_events += count.events
            sums.base_calls += count.calls
        else:
            sums.cand_events += count.events
            sums.cand_calls += count.calls
    both = {key: sums for key, sums in strata.items() if sums.base_calls and sums.cand_calls}
    kept = tuple(count for count in found if count.stratum in both)
    rate = estimate_rate(
        [
            (
                sums,
                _effective_runs(kept, stratum, "baseline"),
                _effective_runs(kept, stratum, "candidate"),
            )
            for stratum, sums in sorted(both.items(), key=repr)
        ],
        metric.dispersion,
        RUN_PRIOR_DF + len({count.unit for count in kept if count.arm == "baseline"}),
    )
    return (
        CountChange(metric, region, rate, kept, sum_causes(metric, region, runs)) if rate else None
    )


def read_counts(metric: AffectedMetric, region: str, steady: SteadyRun) -> list[RunCount]:
    """Events and calls of a run by stratum."""
    sums: dict[Stratum, list[int]] = {}
    for row in steady.rows:
        if row.region == region:
            entry = sums.setdefault(row.stratum, [0, 0])
            entry[0] += metric.events(row)
            entry[1] += metric.calls(row)
    return [
        RunCount(steady.run.unit, steady.run.arm, stratum, events, calls)
        for stratum, (events, calls) in sums.items()
    ]


def sum_causes(metric: AffectedMetric, region: str, runs: Sequence[SteadyRun]) -> dict[str, int]:
    """The candidate's events by cause, most frequent first."""
    counts: dict[str, int] = {}
    for steady in runs:
        for row in steady.rows if steady.run.arm == "candidate" else ():
            for cause, count in metric.causes(row).items() if row.region == region else ():
                counts[cause] = counts.get(cause, 0) + count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _effective_runs(counts: Sequence[RunCount], stratum: Stratum, arm: str) -> float:
    """Number of runs that share the calls equally with the same effect (Kish)."""
    calls = [count.calls for count in counts if count.stratum == stratum and count.arm == arm]
    return sum(calls) ** 2 / sum(each * each for each in calls)
