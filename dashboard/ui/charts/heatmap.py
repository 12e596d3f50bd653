"""Heat map rows: one cell per time slot in five steps of one hue; slots without a report stay
empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

Value = float | None


@dataclass(frozen=True)
class Measure:
    """The metric of a heat map. `bounds` separate its five labelled steps; a value at a bound
    belongs to the lower step."""

    key: str
    title: str
    bounds: tuple[float, float, float, float]
    steps: tuple[str, str, str, str, str]

    def step(self, value: float) -> int:
        """The step (0 to 4) of a value."""
        return sum(value > bound for bound in self.bounds)


MEASURES = (
    Measure(
        "p50",
        "p50 vs version median",
        (1.05, 1.10, 1.20, 1.40),
        ("at most 5% slower", "up to 10%", "up to 20%", "up to 40%", "over 40% slower"),
    ),
    Measure(
        "eager",
        "eager calls",
        (0.0, 0.02, 0.1, 0.5),
        ("none", "up to 2%", "up to 10%", "up to 50%", "over 50%"),
    ),
    Measure(
        "compiling",
        "compile time",
        (0.0, 0.05, 0.2, 0.5),
        ("none", "up to 5%", "up to 20%", "up to 50%", "over 50%"),
    ),
)


@dataclass(frozen=True)
class HeatmapRow:
    """The cells of one row, one path per step; `worst` is the position of the highest value."""

    paths: list[tuple[int, str]]
    count: int
    reported: int
    worst: int | None

    @property
    def missing(self) -> int:
        """Number of slots without a report."""
        return self.count - self.reported


DRIVING_MEASURES = {
    "eager": "eager",
    "partial": "eager",
    "recompiles": "compiling",
    "compile": "compiling",
    "compile_time": "compiling",
}
"""The measure of a metric that drives a verdict; other metrics have p50."""


def list_measures(*, baseline: bool) -> tuple[Measure, ...]:
    """All measures; with `baseline`, p50 is compared with the baseline version."""
    first = replace(MEASURES[0], title="p50 vs baseline") if baseline else MEASURES[0]
    return first, *MEASURES[1:]


def find_measure(measures: Sequence[Measure], key: str, driving: str = "") -> Measure:
    """The measure with this key, else that of the metric that drives the verdict, else the first
    measure."""
    wanted = key if any(one.key == key for one in measures) else DRIVING_MEASURES.get(driving, "")
    return next((one for one in measures if one.key == wanted), measures[0])


def build_heatmap_row(values: Sequence[Value], measure: Measure) -> HeatmapRow:
    """Merges neighbouring cells of the same step, so that long rows stay small."""
    pieces: dict[int, list[str]] = {}
    start, held = 0, None
    steps = [None if value is None else measure.step(value) for value in values]
    for place, step in enumerate([*steps, None]):
        if place == len(steps) or step != held:
            if held is not None:
                pieces.setdefault(held, []).append(
                    f"M{start} 0h{place - start}v1h-{place - start}z"
                )
            start, held = place, step
    known = [(value, place) for place, value in enumerate(values) if value is not None]
    worst = max(known, key=lambda one: (one[0], -one[1]))[1] if known else None
    return HeatmapRow(
        [(step, "".join(pieces[step])) for step in sorted(pieces)], len(values), len(known), worst
    )
