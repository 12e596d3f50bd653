"""The ranks of an alert: ranks that differ and one rank that does not, from their newest
reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from dashboard.alerts.current_verdict import find_divergence_verdict
from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.fleet.models import Instance
from dashboard.fleet.selectors.jobs import list_job_ranks, read_rank_compile_events
from dashboard.projects.selectors import for_project
from dashboard.regressions.evidence_reader import find_rank_divergence
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.rank_matrix import RankMatrix
from dashboard.ui.layout.answer import JobRanks, count_job_ranks
from dashboard.ui.pages.ranks.matrix import build_rank_matrix
from dashboard.ui.pages.ranks.presenter import RankDifference, RankRow, build_rank_table

ROWS, INSTANCES_NAMED = 12, 50
COLUMNS = 3
"""Odd ranks with a column of their own in the comparison."""


@dataclass(frozen=True)
class RankComparison:
    """One property of the odd ranks next to a rank that does not differ. `result` is DIVERGED, NO
    CHANGE, or empty for a property that is not evaluated."""

    name: str
    odd: list[str]
    usual: str
    result: str


@dataclass(frozen=True)
class AlertRanks:
    """The evidence of diverged ranks, with the values for the runbook; `odd` is the first rank that
    differs."""

    job: str
    known_at: datetime
    """When the divergence was last evaluated."""
    lines: list[RankDifference]
    differing: list[RankRow]
    more: int
    usual: RankRow | None
    alike: int
    odd: RankRow | None
    pid: int | None
    frame: str
    since: datetime
    """When the ranks diverged."""
    job_ranks: JobRanks
    matrix: RankMatrix | None = None

    @property
    def columns(self) -> list[RankRow]:
        """The odd ranks of the comparison."""
        return self.differing[:COLUMNS]

    @property
    def hidden(self) -> int:
        """Number of ranks that differ and have no column."""
        return len(self.differing) + self.more - len(self.columns)

    @property
    def comparison(self) -> list[RankComparison]:
        """The properties of the odd ranks, those that are evaluated first."""
        return [
            _compare(name, read, evaluated, self.columns, self.usual)
            for name, read, evaluated in _PROPERTIES
        ]


def _compare(
    name: str,
    read: Callable[[RankRow], str],
    evaluated: bool,
    odd: list[RankRow],
    usual: RankRow | None,
) -> RankComparison:
    values, other = [read(row) for row in odd], read(usual) if usual else ""
    differs = usual is not None and any(value != other for value in values)
    result = ("DIVERGED" if differs else "NO CHANGE") if evaluated and usual else ""
    return RankComparison(name, values, other, result)


_PROPERTIES: tuple[tuple[str, Callable[[RankRow], str], bool], ...] = (
    ("First compilations", lambda row: str(row.first), True),
    ("Recompilations", lambda row: str(row.again), True),
    ("Graph hash", lambda row: row.graphs or "not reported", True),
    ("Cache answers", lambda row: row.answers or "no lookup", False),
    ("Eager calls", lambda row: row.eager or "not known", False),
    ("Compiling now", lambda row: row.now or "none", False),
    ("State", lambda row: row.state.value, False),
    ("Host", lambda row: row.host or "not reported", False),
)


def alert_ranks(alert: Alert, verdicts: Iterable[Verdict | None]) -> AlertRanks | None:
    """Ranks of the newest verdict that names ranks, or None. The table covers the job of the first
    named rank."""
    verdict = find_divergence_verdict(verdicts)
    fact = find_rank_divergence(verdict.evidence) if verdict else None
    if verdict is None or fact is None:
        return None
    named = (fact.instances or ())[:INSTANCES_NAMED]
    job, instances = _read_job(alert, named)
    compiled = read_rank_compile_events(project_id=alert.project_id, instances=instances)
    board = build_rank_table(instances, compiled)
    differing = [row for row in board.urgent if row.apart or row.instance_id in named]
    alike = [row for row in board.rows if row not in differing]
    odd = differing[0] if differing else None
    since = min((line.at for line in board.lines if line.certain), default=alert.opened_at)
    return AlertRanks(
        job=job,
        known_at=clock.at_minute(verdict.minute),
        lines=board.lines,
        differing=differing[:ROWS],
        more=max(0, len(differing) - ROWS),
        usual=alike[0] if alike else None,
        alike=len(alike),
        odd=odd,
        pid={one.instance_id: one.pid for one in instances}.get(odd.instance_id) if odd else None,
        frame=fact.about,
        since=since,
        job_ranks=count_job_ranks(instances, named),
        matrix=build_rank_matrix(
            instances,
            compiled,
            odd=[row.rank for row in differing],
            since=since,
            frame=fact.about,
        ),
    )


def _read_job(alert: Alert, named: Collection[str]) -> tuple[str, list[Instance]]:
    """The job of the first named rank with all of its ranks; two queries."""
    of = alert.deployment
    rows = for_project(Instance, alert.project).filter(instance_id__in=named, model_id=of.model_id)
    first = rows.exclude(job="").order_by("rank", "pk").first()
    if first is None:
        return "", []
    return first.job, list_job_ranks(
        project_id=alert.project_id,
        model_id=of.model_id,
        environment=of.environment,
        job=first.job,
    )
