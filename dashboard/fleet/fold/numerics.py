"""Numerics fold: the latest result of each golden batch of an instance, and its first failure."""

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
    """Result of one golden batch on one instance."""

    at: float
    told: str
    """Newest result, as JSON text."""
    failed_at: float | None

    def merged(self, other: ParityFact) -> ParityFact:
        """Return the newest of two results, with the earlier failure."""
        newest = max(self, other, key=lambda one: (one.at, one.told))
        return replace(newest, failed_at=smaller(self.failed_at, other.failed_at))


def parse_parities(report: Report, window: Window) -> dict[str, ParityFact]:
    """Return results by name, up to MAX_GOLDENS."""
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
    """Clip all texts for display. The name is part of a key, so different names remain
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
