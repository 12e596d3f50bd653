"""Icicle of compile phases: graphs by compile time, and the phases of each graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dashboard.ui.charts.waterfall import NAMES, PHASES, REST
from dashboard.vocabulary import numbers

MOST_GRAPHS = 10
ROW, GAP = 26, 2
LABELLED = 1.5
"""Width in percent below which a cell has no label."""
OTHER_SHADE, UNPHASED = 2, NAMES[REST]


@dataclass(frozen=True)
class GraphPhases:
    """Compile seconds of one graph by phase, and its number of compilations."""

    name: str
    place: str
    seconds: float
    compilations: int
    phases: Mapping[str, float]


@dataclass(frozen=True)
class IcicleCell:
    """One cell; position and width in percent. A narrow cell has no label."""

    x: float
    width: float
    css: str
    label: str
    title: str


@dataclass(frozen=True)
class IcicleRow:
    """A graph of the table: seconds per phase, in the order of `PhaseIcicle.heads`."""

    graph: GraphPhases
    total: str
    share: str
    cells: list[str]


@dataclass(frozen=True)
class PhaseIcicle:
    """The drawing and its table; `more` counts the graphs that form one cell."""

    graphs: list[IcicleCell]
    phases: list[IcicleCell]
    total: str
    heads: list[str]
    rows: list[IcicleRow]
    key: list[tuple[str, str]]
    more: int
    height: int = 2 * ROW + GAP

    @property
    def levels(self) -> tuple[int, int]:
        """The upper edge of the graphs and of their phases."""
        return 0, ROW + GAP


def build_phase_icicle(graphs: Iterable[GraphPhases]) -> PhaseIcicle | None:
    """Draws the graphs, longest first; None without a known duration."""
    known = sorted(
        (graph for graph in graphs if graph.seconds > 0),
        key=lambda graph: (-graph.seconds, graph.name, graph.place),
    )
    whole = sum(graph.seconds for graph in known)
    if not known:
        return None
    shown = [*known[:MOST_GRAPHS], *_rest(known[MOST_GRAPHS:])]
    cells, phases, at = [], [], 0.0
    for graph in shown:
        wide = 100 * graph.seconds / whole
        said = f"{graph.name}: {numbers.duration(graph.seconds)}"
        cells.append(_cell(at, wide, "graph", graph.name, f"{said} of {_compilations(graph)}"))
        phases += _phase_cells(graph, at, wide)
        at += wide
    heads = [name for name, _ in _named_phases() if any(name in split_phases(one) for one in shown)]
    return PhaseIcicle(
        graphs=cells,
        phases=phases,
        total=numbers.duration(whole),
        heads=heads,
        rows=[_table_row(graph, heads, whole) for graph in shown],
        key=[(name, css) for name, css in _named_phases() if name in heads],
        more=max(0, len(known) - MOST_GRAPHS),
    )


def split_phases(graph: GraphPhases) -> dict[str, float]:
    """Seconds by name of phase, in order, with the rest outside of every phase."""
    found = {
        name: seconds
        for name, keys, _ in PHASES
        if (seconds := sum(graph.phases.get(key, 0.0) for key in keys)) > 0
    }
    known = {key for _, keys, _ in PHASES for key in keys}
    rest = graph.seconds - sum(found.values())
    rest = max(rest, sum(value for key, value in graph.phases.items() if key not in known))
    return found | ({UNPHASED: rest} if rest > 0.005 * graph.seconds else {})


def _named_phases() -> list[tuple[str, str]]:
    return [*((name, f"p{shade}") for name, _, shade in PHASES), (UNPHASED, f"p{OTHER_SHADE}")]


def _phase_cells(graph: GraphPhases, at: float, wide: float) -> list[IcicleCell]:
    parts = split_phases(graph)
    whole = max(graph.seconds, sum(parts.values()))
    css = dict(_named_phases())
    cells = []
    for name, seconds in parts.items():
        width = wide * seconds / whole
        title = f"{graph.name}, {name}: {numbers.duration(seconds)}"
        cells.append(_cell(at, width, css[name], f"{name} {numbers.duration(seconds)}", title))
        at += width
    return cells


def _cell(x: float, width: float, css: str, label: str, title: str) -> IcicleCell:
    return IcicleCell(round(x, 3), round(width, 3), css, label if width >= LABELLED else "", title)


def _rest(graphs: Sequence[GraphPhases]) -> list[GraphPhases]:
    """The graphs beyond the limit as one."""
    if not graphs:
        return []
    phases: dict[str, float] = {}
    for graph in graphs:
        for name, seconds in graph.phases.items():
            phases[name] = phases.get(name, 0.0) + seconds
    return [
        GraphPhases(
            numbers.plural(len(graphs), "other graph"),
            "",
            sum(graph.seconds for graph in graphs),
            sum(graph.compilations for graph in graphs),
            phases,
        )
    ]


def _compilations(graph: GraphPhases) -> str:
    return numbers.plural(graph.compilations, "compilation")


def _table_row(graph: GraphPhases, heads: Sequence[str], whole: float) -> IcicleRow:
    parts = split_phases(graph)
    return IcicleRow(
        graph,
        numbers.duration(graph.seconds),
        numbers.percent(graph.seconds / whole),
        [numbers.duration(parts[name]) if name in parts else "–" for name in heads],
    )
