"""Waterfall of one cold start: stages, compilations split into torch's phases, and unexplained
gaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dashboard.vocabulary import numbers

COMPILE, UNACCOUNTED, REST = "compile", "unaccounted", "compile, other"
PHASES: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("Dynamo", ("dynamo", "trace"), 4),
    ("AOTAutograd", ("aot", "lowering"), 5),
    ("Loading from caches", ("cache_load",), 3),
    ("Inductor", ("inductor", "xla", "codegen"), 6),
    ("Triton and C++", ("triton", "cpp", "headers"), 7),
    ("Autotuning", ("autotune",), 8),
    ("CUDA graphs", ("cuda_graphs",), 8),
)
"""Labels and shades of compilation phases, in the order in which torch runs them."""
OF_STAGES = {"autotune": "Autotuning", "cuda graphs": "CUDA graphs"}
NAMES = {
    "before init": "Process start to init",
    "import torch": "Import of torch",
    "import torch._dynamo": "Import of the compiler",
    "before compiling": "Before the first compilation",
    COMPILE: "Compilations",
    REST: "Compilations, in no phase",
    "first compiled call": "First compiled calls",
}
SHADES = {
    "before init": 1,
    "import torch": 2,
    "import torch._dynamo": 2,
    "before compiling": 2,
    COMPILE: 6,
    REST: 3,
    "first compiled call": 1,
}
MARK_SHADE = 3
COMPILING = frozenset({NAMES[COMPILE], NAMES[REST], *(name for name, _, _ in PHASES)})
TICKS = (
    0.1,
    0.2,
    0.5,
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    14400,
    43200,
    86400,
)
NEAR_BUDGET = 4
"""A budget is drawn up to this multiple of the duration."""


@dataclass(frozen=True)
class Step:
    """One step: seconds since process start, and duration. `is_mark`: a mark that the job sets."""

    name: str
    begin: float
    seconds: float
    shade: int
    is_mark: bool = False

    @property
    def is_compiling(self) -> bool:
        """Whether the step is a part of the compilations."""
        return self.name in COMPILING

    @property
    def css(self) -> str:
        """The CSS class of the bar; unexplained time is hatched."""
        return "px" if self.name == UNACCOUNTED else f"p{self.shade}"


@dataclass(frozen=True)
class WaterfallBar:
    """A row of the drawing: the parts of the bar as position and width in percent, and its
    duration."""

    name: str
    parts: list[tuple[float, float]]
    css: str
    seconds: float
    is_mark: bool
    end: float
    """Right end of the bar in percent."""

    @property
    def took(self) -> str:
        """The duration as text."""
        return numbers.duration(self.seconds)


@dataclass(frozen=True)
class Waterfall:
    """The drawing of one start; the budget is a position in percent, None if it is far away."""

    bars: list[WaterfallBar]
    ticks: list[tuple[float, str]]
    budget: float | None
    total: float
    """Position of the end of the start in percent."""


def build_steps(
    total: float, stages: Sequence[tuple[str, float, float]], phases: Mapping[str, float]
) -> list[Step]:
    """Stages in order, with compilations split into phases if the phases fit, and the gaps between
    stages."""
    steps: list[Step] = []
    staged = {OF_STAGES[name] for name, _, _ in stages if name in OF_STAGES}
    for name, begin, seconds in sorted(stages, key=lambda stage: stage[1]):
        steps += (
            _split_phases(begin, seconds, phases, staged)
            if name == COMPILE
            else [_stage(name, begin, seconds)]
        )
    return steps + _gaps(total, stages)


def _stage(name: str, begin: float, seconds: float) -> Step:
    if name in OF_STAGES:
        return Step(OF_STAGES[name], begin, seconds, 8)
    return Step(
        NAMES.get(name, name), begin, seconds, SHADES.get(name, MARK_SHADE), name not in NAMES
    )


def _split_phases(
    begin: float, seconds: float, phases: Mapping[str, float], staged: set[str]
) -> list[Step]:
    """Splits a compile stage by phases. Phases are sums over all compilations and exceed the
    elapsed time if threads compiled concurrently."""
    known = [
        (name, sum(phases.get(key, 0.0) for key in keys), shade)
        for name, keys, shade in PHASES
        if name not in staged
    ]
    known = [one for one in known if one[1] > 0]
    if not known or sum(one[1] for one in known) > seconds * 1.02:
        return [Step(NAMES[COMPILE], begin, seconds, SHADES[COMPILE])]
    steps, at = [], begin
    for name, took, shade in known:
        steps.append(Step(name, at, took, shade))
        at += took
    rest = begin + seconds - at
    return steps + ([Step(NAMES[REST], at, rest, SHADES[REST])] if rest > 0.005 * seconds else [])


def _gaps(total: float, stages: Iterable[tuple[str, float, float]]) -> list[Step]:
    found, at = [], 0.0
    for _, begin, seconds in sorted(stages, key=lambda stage: stage[1]):
        if begin > at + 1e-6:
            found.append(Step(UNACCOUNTED, at, begin - at, 0))
        at = max(at, begin + seconds)
    return [*found, Step(UNACCOUNTED, at, total - at, 0)] if total > at + 1e-6 else found


def sum_by_name(steps: Iterable[Step]) -> dict[str, float]:
    """Seconds per name, in order."""
    found: dict[str, float] = {}
    for step in steps:
        found[step.name] = found.get(step.name, 0.0) + step.seconds
    return found


def build_waterfall(total: float, steps: Sequence[Step], budget: float | None) -> Waterfall:
    """One row per name, on an axis that covers the whole start, and the budget if it is near."""
    shown = budget if budget is not None and budget <= NEAR_BUDGET * total else None
    most = 1.02 * max(total, shown or 0.0, 1e-3)
    scale = 100 / most
    bars = []
    for name, seconds in sum_by_name(steps).items():
        own = [step for step in steps if step.name == name]
        bars.append(
            WaterfallBar(
                name=name,
                parts=[
                    (round(step.begin * scale, 2), round(max(0.15, step.seconds * scale), 2))
                    for step in own
                ],
                css=own[0].css,
                seconds=seconds,
                is_mark=own[0].is_mark,
                end=round(max(step.begin + step.seconds for step in own) * scale, 2),
            )
        )
    return Waterfall(
        bars=bars,
        ticks=[
            (round(at * scale, 2), numbers.duration(at) if at else f"0{numbers.SPACE}s")
            for at in ticks(most)
        ],
        budget=round(shown * scale, 2) if shown is not None else None,
        total=round(total * scale, 2),
    )


def ticks(most: float, count: int = 7) -> list[float]:
    """At most `count` round times from 0."""
    step = next((one for one in TICKS if most / one <= count), most / count)
    return [step * number for number in range(int(most / step + 1e-9) + 1)]
