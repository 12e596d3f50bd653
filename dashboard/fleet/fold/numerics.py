"""What an instance tells of its golden batches: of each name what it told last, and when it failed
first."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from compilewatch.wire.messages import Report
from compilewatch.wire.numerics import (
    MAX_GOLDENS,
    MAX_NAME,
    MAX_SHORT,
    MAX_WHY,
    Parity,
    parity_data,
    parity_of,
)

from dashboard.fleet.fold.column_text import clip_label, clip_name
from dashboard.fleet.fold.counters import smaller
from dashboard.fleet.fold.report_window import Window


@dataclass(frozen=True, slots=True)
class ParityFact:
    """One golden batch of one instance."""

    at: float
    told: str
    """The newest, as JSON text."""
    failed_at: float | None

    def merged(self, other: ParityFact) -> ParityFact:
        """With what another report says of the same one."""
        newest = max(self, other, key=lambda one: (one.at, one.told))
        return replace(newest, failed_at=smaller(self.failed_at, other.failed_at))


def parse_parities(report: Report, window: Window) -> dict[str, ParityFact]:
    """By name, as many as one process may tell of."""
    found: dict[str, ParityFact] = {}
    for fact in report.facts:
        if fact.kind != "parity":
            continue
        told, at = parity_of(fact.data), window.moment(fact.at)
        told = clip_parity_texts(told)
        one = ParityFact(
            at,
            json.dumps(parity_data(told), sort_keys=True),
            at if told.state == "failed" else None,
        )
        if told.name in found:
            found[told.name] = found[told.name].merged(one)
        elif len(found) < MAX_GOLDENS:
            found[told.name] = one
    return found


def clip_parity_texts(told: Parity) -> Parity:
    """With texts that show all they hold; a name is part of a key, and two different ones stay
    different."""
    return replace(
        told,
        name=clip_name(told.name, MAX_NAME),
        why=clip_label(told.why, MAX_WHY),
        region=clip_label(told.region, MAX_NAME),
        where=clip_label(told.where, MAX_SHORT),
        reference=clip_label(told.reference, MAX_SHORT),
        dtype=clip_label(told.dtype, MAX_SHORT),
        last_version=clip_label(told.last_version, MAX_NAME),
    )
