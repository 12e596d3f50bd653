"""Findings list: one row per finding, with its remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.common import clock
from dashboard.fleet.selectors.findings.finding_list import EnvironmentState, ListedFinding
from dashboard.fleet.selectors.findings.findings import CERTAIN_KINDS
from dashboard.ui.charts.guard_variation import Variation, build_variation
from dashboard.ui.pages.findings.columns import KINDS
from dashboard.ui.pages.findings.remedies import build_break_url, find_remedy

HEAD = [
    "finding",
    "kind",
    "text",
    "place",
    "model",
    "states",
    "times",
    "instances",
    "first version",
    "first seen",
    "last version",
    "last seen",
    "what varies",
]


@dataclass(frozen=True)
class FindingStateLabel:
    """State of a finding in an environment; `environment` is empty if there is only one."""

    word: str
    environment: str
    since: datetime

    @property
    def mark(self) -> str:
        """The name of the mark's shape."""
        return f"life-{self.word}"


@dataclass(frozen=True)
class FindingRow:
    """One row; text, place and names come from the agent and are always escaped."""

    id: int
    kind: str
    certain: bool
    text: str
    where: str
    model_id: int
    model: str
    simulated: bool
    lives: list[FindingStateLabel]
    times: int
    instances: int
    first_version: str
    first_seen: datetime
    last_version: str
    last_seen: datetime
    hint: str
    break_url: str
    varies: Variation


def format_kind(kind: str) -> str:
    """The label of a kind."""
    return KINDS.get(kind, kind.replace("_", " "))


def finding_rows(rows: Sequence[ListedFinding]) -> list[FindingRow]:
    """The rows as text; environments are named if there is more than one."""
    several = len({life.environment for row in rows for life in row.lives}) > 1
    return [_row(row, several) for row in rows]


def _row(row: ListedFinding, several: bool) -> FindingRow:
    return FindingRow(
        id=row.id,
        kind=format_kind(row.kind),
        certain=row.kind in CERTAIN_KINDS,
        text=first_line(row.text),
        where=row.where,
        model_id=row.model_id,
        model=row.model,
        simulated=row.simulated,
        lives=format_states(row.lives, several),
        times=row.times,
        instances=row.instances,
        first_version=row.first_version,
        first_seen=row.first_seen_at,
        last_version=row.last_version,
        last_seen=row.last_seen_at,
        hint=find_remedy(row.kind, row.text),
        break_url=build_break_url(row.kind, row.text),
        varies=build_variation(row.values, row.distinct, row.pattern, row.text),
    )


def format_states(lives: Sequence[EnvironmentState], several: bool) -> list[FindingStateLabel]:
    """States as labels."""
    return [
        FindingStateLabel(
            life.state, life.environment if several else "", clock.at_minute(life.since_minute)
        )
        for life in lives
    ]


def first_line(text: str) -> str:
    """The first line of a text, or the empty text."""
    return next(iter(text.strip().splitlines()), "")


def tabulate_findings(rows: Sequence[ListedFinding]) -> list[list[object]]:
    """The rows as a table for a file, with HEAD as the header."""
    return [
        [
            row.id,
            row.kind,
            row.text,
            row.where,
            row.model,
            "; ".join(f"{life.environment}: {life.state}" for life in row.lives),
            row.times,
            row.instances,
            row.first_version,
            row.first_seen_at.isoformat(),
            row.last_version,
            row.last_seen_at.isoformat(),
            build_variation(row.values, row.distinct, row.pattern, row.text).all_words,
        ]
        for row in rows
    ]
