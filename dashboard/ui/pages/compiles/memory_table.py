"""Memory of each version: maximum across instances, growth, and the number of out-of-memory
errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.fleet.selectors.instances.memory import MemoryData
from dashboard.ui.charts.version_styles import VersionStyle
from dashboard.vocabulary import numbers

UNKNOWN = "–"
HEADS = (
    "GPU in use",
    "GPU peak",
    "GPU reserved",
    "CUDA graphs",
    "GPU busy",
    "Host",
    "Host growth",
    "Compile workers",
    "Out of memory",
)


@dataclass(frozen=True)
class MemoryRow:
    """One version, with one cell per column."""

    version: VersionStyle
    cells: list[tuple[str, str]]


def memory_rows(drawn: Sequence[VersionStyle], memory: Mapping[int, MemoryData]) -> list[MemoryRow]:
    """One row per version with known values."""
    return [
        MemoryRow(version, list(zip(HEADS, _cells(memory[version.id]), strict=True)))
        for version in drawn
        if version.id in memory
    ]


def _cells(facts: MemoryData) -> list[str]:
    return [
        _size(facts.gpu_allocated),
        _size(facts.gpu_peak),
        _size(facts.gpu_reserved),
        _size(facts.gpu_graph_pool),
        UNKNOWN if facts.gpu_utilisation is None else numbers.percent(facts.gpu_utilisation),
        _size(facts.host_rss),
        UNKNOWN
        if facts.host_rss_slope is None
        else f"{numbers.signed_size(facts.host_rss_slope)}/h",
        _size(facts.workers_rss),
        numbers.plural(facts.ooms, "time")
        if facts.ooms
        else UNKNOWN
        if facts.gpu_allocated is None
        else "never",
    ]


def _size(count: int | None) -> str:
    return UNKNOWN if count is None else numbers.size(count)
