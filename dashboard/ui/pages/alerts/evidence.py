"""Evidence of the Alert page: the evaluated metrics of the alert's verdict, the worst first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard.alerts.evidence_lines import RANKS_DIVERGED
from dashboard.ui.charts.fact_lines import FactLine, fact_lines
from dashboard.ui.layout.change_rows import ChangeRow, build_change_rows
from dashboard.ui.pages.alerts.affected_hosts import FactHosts
from dashboard.ui.pages.alerts.queries import AlertData
from dashboard.ui.pages.alerts.timeline import list_affected_hosts
from dashboard.vocabulary.severity import REGRESSED

MAX_ROWS_SHOWN = 8
"""Regressed metrics are always shown; Compare shows all."""


@dataclass(frozen=True)
class Evidence:
    """Rows of the table, number of omitted rows, confirmed facts and their hosts; `at` is the time
    of the verdict."""

    rows: list[ChangeRow]
    omitted: int
    facts: list[FactLine]
    hosts: list[FactHosts]
    at: datetime | None

    @property
    def empty(self) -> bool:
        """True if there is nothing to show."""
        return not (self.rows or self.facts or self.hosts)


def build_evidence(page: AlertData, *, ranks: bool) -> Evidence:
    """The evidence of the newest verdict that is WATCH or worse. With `ranks`, the page compares
    the ranks and does not repeat that they diverged."""
    verdict = page.bad
    if verdict is None:
        return Evidence([], 0, [], list_affected_hosts(page), None)
    rows = build_change_rows(verdict.evidence, verdict.kind)
    regressed = sum(row.label == REGRESSED for row in rows)
    shown = rows[: max(MAX_ROWS_SHOWN, regressed)]
    return Evidence(
        rows=shown,
        omitted=len(rows) - len(shown),
        facts=fact_lines(_without_ranks(verdict.evidence) if ranks else verdict.evidence),
        hosts=list_affected_hosts(page),
        at=verdict.created_at,
    )


def _without_ranks(evidence: Any) -> Any:
    if not isinstance(evidence, dict) or not isinstance(evidence.get("facts"), list):
        return evidence
    kept = [
        one
        for one in evidence["facts"]
        if not (isinstance(one, dict) and one.get("kind") == RANKS_DIVERGED)
    ]
    return evidence | {"facts": kept}
