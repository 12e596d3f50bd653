"""Telemetry gaps: signals that the agents of a version do not report, with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from compilewatch.wire.messages import HELPS_ALONE

from dashboard.fleet.selectors.instances.cold_starts import ProcessStart
from dashboard.vocabulary import numbers

ANSWERS = {"no": "not available", "partly": "partial", "off": "switched off"}


@dataclass(frozen=True)
class BlindSpot:
    """One signal that some processes do not report, with the reason."""

    name: str
    answer: str
    why: str
    processes: int
    known: int


@dataclass(frozen=True)
class TelemetryGaps:
    """All gaps; `untelling` processes run older agents that do not report capabilities."""

    rows: list[BlindSpot] = field(default_factory=list)
    untelling: int = 0
    processes: int = 0

    @property
    def summary(self) -> str:
        """All gaps on one line."""
        if self.rows:
            return f"{numbers.plural(len(self.rows), 'signal')} not reported by all processes"
        if self.untelling:
            return "unknown for some processes"
        return "none" if self.processes else "no known processes"

    @property
    def untelling_words(self) -> str:
        """`untelling` as a sentence."""
        whole = numbers.plural(self.processes, "process", "processes")
        return (
            f"{self.untelling} of {whole} run an older agent that does not report its "
            "capabilities. Missing values of these processes are unknown, not zero."
        )


def list_telemetry_gaps(own: Sequence[ProcessStart]) -> TelemetryGaps:
    """Signals that agents do not report, most frequent first."""
    seen: Counter[tuple[str, str, str]] = Counter()
    known: Counter[str] = Counter()
    for process in own:
        for name, told in process.capabilities.items():
            answer, why = (
                str(one)
                for one in (told if isinstance(told, list) and len(told) == 2 else ("", ""))
            )
            if why == HELPS_ALONE:
                continue
            known[name] += 1
            if answer and answer != "yes":
                seen[name, answer, why] += 1
    rows = [
        BlindSpot(name.replace("_", " "), ANSWERS.get(answer, answer), why, count, known[name])
        for (name, answer, why), count in seen.items()
    ]
    return TelemetryGaps(
        rows=sorted(rows, key=lambda row: (-row.processes, row.name)),
        untelling=sum(not one.capabilities for one in own),
        processes=len(own),
    )
