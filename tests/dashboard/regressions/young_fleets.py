"""A simulated fleet whose young processes are slower: by 40% at their start, linearly less until an
age of 30 minutes. Candidates may restart often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dashboard.regressions.judge import Comparison, InstanceMinute, Outcome, Settings
from dashboard.regressions.judge.evaluate import evaluate_comparison
from dashboard.regressions.judge.settings import P50
from dashboard.regressions.judge.warm_up import WarmUpLesson, WarmUpSums
from tests.bench.fleet_sim import Fleet, instance_minutes

SETTLED_MINUTES = 30
ONLY = Settings(metrics=(P50,), process_metrics=())


@dataclass(frozen=True)
class Youth:
    """The excess of a new process, constant or with a linear decay, and the interval of the candidate's
    restarts; 0 means never."""

    slower: float = 0.4
    settled_minutes: int = SETTLED_MINUTES
    decay: bool = True
    restart_minutes: int = 0

    def minutes(self, fleet: Fleet) -> Iterator[list[InstanceMinute]]:
        """The rows of the fleet by minute."""
        for rows in instance_minutes(fleet):
            yield [self._age(self._restart(row)) for row in rows]

    def _restart(self, row: InstanceMinute) -> InstanceMinute:
        if not self.restart_minutes or row.arm == "baseline":
            return row
        process, age = divmod(row.minute - row.first_minute, self.restart_minutes)
        return replace(row, instance=f"{row.unit}.{process}", first_minute=row.minute - age)

    def _age(self, row: InstanceMinute) -> InstanceMinute:
        age = row.minute - row.first_minute
        rest = max(0.0, 1 - age / self.settled_minutes)
        factor = 1 + self.slower * (rest if self.decay else float(rest > 0.0))
        return replace(row, p50=row.p50 and row.p50 * factor)


def learn(fleet: Fleet, youth: Youth) -> WarmUpSums:
    """The lesson of one pair of versions."""
    comparison, lesson = Comparison(fleet.history, ONLY), WarmUpLesson(ONLY)
    for minute, rows in enumerate(youth.minutes(fleet)):
        comparison.add_minute(minute, rows)
        lesson.observe(comparison, rows)
    return lesson.taught()


def with_learned(minutes: int) -> Settings:
    """The settings of a model whose warm-up was learned."""
    return replace(ONLY, warm_up_minutes=minutes, warm_up_source="learned", warm_up_processes=32)


def evaluate(fleet: Fleet, youth: Youth, settings: Settings) -> Outcome:
    """The outcome at the end of the fleet."""
    comparison = Comparison(fleet.history, settings)
    for minute, rows in enumerate(youth.minutes(fleet)):
        comparison.add_minute(minute, rows)
    return evaluate_comparison(comparison, now_minute=fleet.history + fleet.minutes)
