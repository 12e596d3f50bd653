"""A row of a heat map: one cell a slot of time, in five steps of one hue; a slot without a report
stays empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Value = float | None


@dataclass(frozen=True)
class Measure:
    """What a heat map shows: `bounds` part its five steps, each with its words; a value at a bound
    belongs below it."""

    key: str
    title: str
    bounds: tuple[float, float, float, float]
    steps: tuple[str, str, str, str, str]

    def step(self, value: float) -> int:
        """Which of the five steps a value is in."""
        return sum(value > bound for bound in self.bounds)


MEASURES = (
    Measure(
        "p50",
        "p50 beside its version",
        (1.05, 1.10, 1.20, 1.40),
        ("at most 5 % slower", "up to 10 %", "up to 20 %", "up to 40 %", "over 40 % slower"),
    ),
    Measure(
        "eager",
        "calls that ran eager",
        (0.0, 0.02, 0.1, 0.5),
        ("none", "up to 2 %", "up to 10 %", "up to 50 %", "over half"),
    ),
    Measure(
        "compiling",
        "time spent compiling",
        (0.0, 0.05, 0.2, 0.5),
        ("none", "up to 5 %", "up to 20 %", "up to 50 %", "over half"),
    ),
)


@dataclass(frozen=True)
class HeatmapRow:
    """The cells of one row as a path a step; `worst` is the place of its highest value."""

    paths: list[tuple[int, str]]
    count: int
    reported: int
    worst: int | None

    @property
    def missing(self) -> int:
        """How many slots had no report."""
        return self.count - self.reported


def find_measure(key: str) -> Measure:
    """The measure of that name, else the first."""
    return next((one for one in MEASURES if one.key == key), MEASURES[0])


def build_heatmap_row(values: Sequence[Value], measure: Measure) -> HeatmapRow:
    """Neighbours in the same step are one piece, so that a row of any length stays small."""
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
