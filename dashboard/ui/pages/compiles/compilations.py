"""Compilations as rows: frame, reason, time per phase, and whether a request waited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN

from dashboard.fleet.metrics.recompile_reasons import REASONS, REPEAT_REASONS, reason_name
from dashboard.fleet.models import CompileEvent
from dashboard.fleet.selectors.compilations.compilations import VersionCompilation
from dashboard.vocabulary import numbers

SHOWN = ("race", *REPEAT_REASONS)
SHADES = {
    "dynamo": 4,
    "trace": 4,
    "lowering": 5,
    "aot": 5,
    "cache_load": 3,
    "inductor": 6,
    "xla": 6,
    "codegen": 6,
    "headers": 3,
    "cpp": 7,
    "triton": 7,
    "autotune": 8,
    "cuda_graphs": 8,
}
"""Phases in the order in which torch and JAX run them, each with its shade."""


@dataclass(frozen=True)
class Phase:
    """One exclusive phase; begin and width of its bar are percentages of the total."""

    name: str
    seconds: str
    start: float
    width: float
    shade: int


@dataclass(frozen=True)
class Compilation:
    """One row of the table."""

    event: CompileEvent | VersionCompilation
    instance: str
    after: str
    """Time since process start."""
    total: str
    phases: list[Phase]
    unphased: str
    cache: str
    cause: str
    """Cause of the cache miss."""

    @property
    def why(self) -> str:
        """The kind of the reason, if the text of the reason does not state it."""
        return reason_name(self.event.reason_kind) if self.event.reason_kind in SHOWN else ""

    @property
    def remedy(self) -> str:
        """The remedy, if the kind of the reason has one."""
        return REASONS[self.event.reason_kind].remedy if self.event.reason_kind in SHOWN else ""

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.event.file}:{self.event.line}" if self.event.file else ""

    @property
    def how(self) -> str:
        """The options of torch.compile that are known and not the default."""
        event = self.event
        mode = event.mode if event.mode not in ("default", event.backend) else ""
        dynamic = {"yes": "dynamic", "no": "not dynamic"}.get(event.dynamic, "")
        return ", ".join(
            part
            for part in (event.backend, mode, dynamic, "fullgraph" if event.fullgraph else "")
            if part
        )

    @property
    def said(self) -> str:
        """The phases as text."""
        parts = [f"{phase.name} {phase.seconds}" for phase in self.phases]
        return ", ".join([*parts, f"other {self.unphased}"] if self.unphased and parts else parts)


def list_compilations(
    events: Iterable[CompileEvent | VersionCompilation],
    processes: Mapping[int, tuple[str, datetime]],
    causes: Mapping[int, str] | None = None,
) -> list[Compilation]:
    """One row per event. `processes` gives the name and the start of each instance. `causes` gives
    the cause of misses that the agent of an instance could not explain."""
    causes = causes or {}
    return [
        Compilation(
            event=event,
            instance=processes[event.instance_id][0] if event.instance_id in processes else "",
            after=_after(event, processes),
            total=numbers.duration(event.total) if event.total is not None else "not known",
            phases=_phases(event),
            unphased=_rest(event),
            cache=_cache(event),
            cause=causes.get(event.instance_id, event.miss)
            if event.miss == NO_EARLIER_RUN
            else event.miss,
        )
        for event in events
    ]


def _after(
    event: CompileEvent | VersionCompilation, processes: Mapping[int, tuple[str, datetime]]
) -> str:
    if event.instance_id not in processes:
        return ""
    started = processes[event.instance_id][1]
    return numbers.duration(max(0.0, event.at.timestamp() - started.timestamp()))


def _seconds(event: CompileEvent | VersionCompilation) -> list[tuple[str, float]]:
    found = event.phases.items() if isinstance(event.phases, dict) else ()
    seconds = [
        (str(name), float(value))
        for name, value in found
        if isinstance(value, int | float) and value > 0 and name != "total"
    ]
    # PostgreSQL does not keep the order of keys: sort by the order in which torch runs the phases.
    order = list(SHADES)
    return sorted(
        seconds, key=lambda item: order.index(item[0]) if item[0] in SHADES else len(order)
    )


def _phases(event: CompileEvent | VersionCompilation) -> list[Phase]:
    seconds = _seconds(event)
    whole = max(event.total or 0.0, sum(value for _, value in seconds))
    phases = []
    start = 0.0
    for name, value in seconds:
        width = 100 * value / whole
        phases.append(
            Phase(
                name.replace("_", " "),
                numbers.duration(value),
                round(start, 2),
                round(width, 2),
                SHADES.get(name, 3),
            )
        )
        start += width
    return phases


def _rest(event: CompileEvent | VersionCompilation) -> str:
    """The time outside of every phase; empty below 5% of the total."""
    rest = (event.total or 0.0) - sum(value for _, value in _seconds(event))
    return numbers.duration(rest) if event.total and rest > 0.05 * event.total else ""


def _cache(event: CompileEvent | VersionCompilation) -> str:
    answers = {
        "FX": event.cache_fx,
        "AOT": event.cache_aot,
        "autotune": event.cache_autotune,
        "Triton bundle": event.cache_bundle,
        "mega-cache": event.cache_mega,
    }
    return ", ".join(f"{name} {found}" for name, found in answers.items() if found) or "not used"
