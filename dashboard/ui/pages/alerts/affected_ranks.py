"""The ranks of an alert: ranks that differ and one rank that does not, from their newest
reports."""

from __future__ import annotations

from collections.abc import Iterable
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
from dashboard.ui.pages.ranks.presenter import RankDifference, RankRow, build_rank_table

ROWS, INSTANCES_NAMED = 12, 50


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


def alert_ranks(alert: Alert, verdicts: Iterable[Verdict | None]) -> AlertRanks | None:
    """Ranks of the newest verdict that names ranks, or None. The table covers the job of the first
    named rank."""
    verdict = find_divergence_verdict(verdicts)
    fact = find_rank_divergence(verdict.evidence) if verdict else None
    if verdict is None or fact is None:
        return None
    named = (fact.instances or ())[:INSTANCES_NAMED]
    rows = for_project(Instance, alert.project).filter(
        instance_id__in=named, model_id=alert.deployment.model_id
    )
    first = rows.exclude(job="").order_by("rank", "pk").first()
    job = first.job if first else ""
    of = alert.deployment
    instances = (
        list_job_ranks(
            project_id=alert.project_id, model_id=of.model_id, environment=of.environment, job=job
        )
        if job
        else []
    )
    board = build_rank_table(
        instances, read_rank_compile_events(project_id=alert.project_id, instances=instances)
    )
    differing = [row for row in board.urgent if row.apart or row.instance_id in named]
    alike = [row for row in board.rows if row not in differing]
    odd = differing[0] if differing else None
    return AlertRanks(
        job=job,
        known_at=clock.at_minute(verdict.minute),
        lines=board.lines,
        differing=differing[:ROWS],
        more=max(0, len(differing) - ROWS),
        usual=alike[0] if alike else None,
        alike=len(alike),
        odd=odd,
        pid=next(
            (one.pid for one in instances if odd and one.instance_id == odd.instance_id), None
        ),
        frame=fact.about,
    )
