"""Numerical parity of compiled and eager results: golden batches of a version, and processes
without a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from compilewatch.wire.numerics import Parity, parity_words

from dashboard.fleet.selectors.instances.cold_starts import ProcessStart
from dashboard.fleet.selectors.numerics import ParityRow
from dashboard.vocabulary import numbers
from dashboard.vocabulary.numbers import significant

NAMED, REASONS = 3, 2


@dataclass(frozen=True)
class GoldenBatch:
    """One golden batch of a version across its processes."""

    name: str
    region: str
    passed: int
    failed: int
    not_compared: int
    silent: int
    """Number of processes that did not report this batch."""
    worst: Parity
    worst_text: str
    where: list[str]
    """The first few processes where the batch failed."""
    gpus: list[str]
    since: datetime | None
    reasons: list[str]
    before: str
    """The result of the same batch on the baseline."""
    last: str
    """Comparison of the outputs with the last passing version on the same host."""

    @property
    def state(self) -> str:
        """The worst state of the processes."""
        return "failed" if self.failed else "passed" if self.passed else "not compared"

    @property
    def more(self) -> int:
        """Number of further processes where the batch failed."""
        return max(0, self.failed - len(self.where))


@dataclass(frozen=True)
class ParityCard:
    """All data of the card."""

    batches: list[GoldenBatch] = field(default_factory=list)
    processes: int = 0
    silent: int = 0
    """Number of processes that reported no golden batch."""

    @property
    def verdict(self) -> str:
        """One line for the header."""
        failed = [one for one in self.batches if one.failed]
        compared = [one for one in self.batches if one.passed]
        if failed:
            return f"{numbers.plural(len(failed), 'golden batch', 'golden batches')} failed"
        if not compared:
            return "no batch was compared" if self.batches else "no golden batch"
        open_ = len(self.batches) - len(compared)
        return "all compared batches passed" if open_ else "all passed"


def parity_card(
    rows: Sequence[ParityRow],
    own: Sequence[ProcessStart],
    *,
    version: int,
    baseline: str,
    baseline_id: int | None,
) -> ParityCard:
    """Builds the card, without processes that the page no longer lists."""
    known = {one.id: one for one in own}
    mine: dict[str, list[ParityRow]] = {}
    theirs: dict[str, list[ParityRow]] = {}
    for row in rows:
        if row.told.kind:
            continue
        if row.version_id == version and row.instance in known:
            mine.setdefault(row.told.name, []).append(row)
        elif row.version_id == baseline_id:
            theirs.setdefault(row.told.name, []).append(row)
    batches = [
        _batch(name, found, known, _before(theirs.get(name, []), baseline))
        for name, found in mine.items()
    ]
    instances = {row.instance for found in mine.values() for row in found}
    return ParityCard(
        sorted(batches, key=lambda one: (-one.failed, one.name)),
        len(own),
        len(own) - len(instances),
    )


def _batch(
    name: str, rows: Sequence[ParityRow], known: dict[int, ProcessStart], before: str
) -> GoldenBatch:
    states = Counter(row.told.state for row in rows)
    failed = [row for row in rows if row.told.state == "failed"]
    compared = failed or [row for row in rows if row.told.state == "passed"] or list(rows)
    worst = max(
        compared, key=lambda row: row.told.times if row.told.times is not None else float("inf")
    ).told
    reasons = Counter(
        row.told.why or "unknown reason" for row in rows if row.told.state == "not compared"
    )
    return GoldenBatch(
        name=name,
        region=worst.region,
        passed=states["passed"],
        failed=len(failed),
        not_compared=states["not compared"],
        silent=len(known) - len({row.instance for row in rows}),
        worst=worst,
        worst_text=parity_words(worst),
        where=[known[row.instance].name for row in failed[:NAMED]],
        gpus=sorted({known[row.instance].gpu or "CPU" for row in failed})[:NAMED],
        since=min((row.failed_at for row in failed if row.failed_at is not None), default=None),
        reasons=[
            f"{why} ({numbers.plural(count, 'process', 'processes')})"
            for why, count in reasons.most_common(REASONS)
        ],
        before=before,
        last=_last(rows),
    )


def _before(rows: Sequence[ParityRow], baseline: str) -> str:
    states = Counter(row.told.state for row in rows)
    if states["failed"]:
        failed = numbers.plural(states["failed"], "process", "processes")
        return f"also failed on {failed} of {baseline}"
    return (
        f"passed on {numbers.plural(states['passed'], 'process', 'processes')} of {baseline}"
        if states["passed"]
        else ""
    )


def _last(rows: Sequence[ParityRow]) -> str:
    """The largest change from the previous version, if weights and inputs are the same."""
    comparisons = [row.told for row in rows if row.told.last in ("same", "differs")]
    moved = [one for one in comparisons if one.last == "differs"]
    if not moved:
        return f"same outputs as {comparisons[0].last_version}" if comparisons else ""
    most = max(
        moved, key=lambda one: one.last_change if one.last_change is not None else float("inf")
    )
    if most.last_change is None:
        return f"outputs differ from {most.last_version}"
    return (
        f"outputs differ by about {significant(most.last_change * 100, 2)}% from "
        f"{most.last_version}, with the same weights and inputs"
    )


def parity_json(card: ParityCard) -> dict[str, Any]:
    """The card as JSON."""
    return {
        "processes": card.processes,
        "silent": card.silent,
        "batches": [
            {
                "name": one.name,
                "region": one.region or None,
                "state": one.state,
                "passed": one.passed,
                "failed": one.failed,
                "not_compared": one.not_compared,
                "silent": one.silent,
                "worst": one.worst_text,
                "error": one.worst.error,
                "eager_error": one.worst.eager_error,
                "tolerance": one.worst.tolerance,
                "nonfinite": one.worst.nonfinite,
                "since": one.since.isoformat() if one.since else None,
                "baseline": one.before or None,
            }
            for one in card.batches
        ],
    }
