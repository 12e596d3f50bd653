"""Cold start of the newest process of each version: stages in order, and the unexplained rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from dashboard.fleet.selectors.compilations.cache_answers import StartMisses
from dashboard.fleet.selectors.compilations.cache_miss_causes import MissExplanation
from dashboard.fleet.selectors.instances.instances import ColdStartData, InstanceData
from dashboard.ui.charts.version_styles import VersionStyle
from dashboard.ui.pages.compiles.cache_queries import CacheData
from dashboard.ui.pages.compiles.caches_table import format_cause
from dashboard.vocabulary import numbers

NAMES = {
    "before init": "before compilewatch.init",
    "import torch": "import torch",
    "import torch._dynamo": "import torch._dynamo, the compiler",
    "before compiling": "before the first compilation",
    "compile": "compilations",
    "autotune": "autotuning",
    "cuda graphs": "capture of CUDA graphs",
    "first compiled call": "first compiled calls",
}
ENDS = {"first call": "until calls ran without compiling", "ready": "until ready()"}
SHADES = {
    "before init": 3,
    "before compiling": 3,
    "import torch": 4,
    "import torch._dynamo": 4,
    "compile": 6,
    "autotune": 7,
    "cuda graphs": 8,
    "first compiled call": 2,
}
MARK_SHADE = 5


@dataclass(frozen=True)
class StartStage:
    """One stage of a start; begin and width of its bar are percentages of the total. `is_mark`: a
    mark that the job sets."""

    name: str
    begins: str
    took: str
    start: float
    width: float
    shade: int
    is_mark: bool
    said: str = ""


@dataclass(frozen=True)
class VersionStart:
    """The newest start of a version, with the median of all starts of the version."""

    version: VersionStyle
    instance: str
    total: str
    until: str
    usual: str
    stages: list[StartStage]
    unaccounted: str
    missed: str
    """The part of the start that missed the compile caches, with the main cause."""


def cold_starts(
    drawn: Sequence[VersionStyle], instances: Iterable[InstanceData], caches: CacheData
) -> list[VersionStart]:
    """One start per version with a known start, in the order of `drawn`."""
    by_version: dict[int, list[tuple[InstanceData, ColdStartData]]] = {}
    for instance in instances:
        if instance.start is not None:
            by_version.setdefault(instance.version_id, []).append((instance, instance.start))
    found = []
    for version in drawn:
        if version.id in by_version:
            instance, newest = max(
                by_version[version.id], key=lambda one: (bool(one[1].stages), one[0].started_minute)
            )
            why = _missed(caches.starts.get(instance.id, ()), caches.compared.get(instance.id))
            found.append(
                _start(
                    version,
                    instance,
                    newest,
                    [start.total for _, start in by_version[version.id]],
                    why,
                )
            )
    return found


def _start(
    version: VersionStyle,
    instance: InstanceData,
    newest: ColdStartData,
    totals: list[float],
    missed: str,
) -> VersionStart:
    usual = f"median of {numbers.plural(len(totals), 'start')} {numbers.duration(median(totals))}"
    return VersionStart(
        version=version,
        instance=instance.name,
        total=numbers.duration(newest.total),
        until=ENDS.get(newest.until, newest.until),
        usual=usual if len(totals) > 1 else "",
        stages=[_stage(newest, *stage) for stage in newest.stages],
        unaccounted=numbers.duration(newest.unaccounted) if newest.unaccounted is not None else "",
        missed=missed,
    )


def _missed(causes: Sequence[StartMisses], compared: MissExplanation | None) -> str:
    if not causes:
        return ""
    count, seconds = sum(one.compilations for one in causes), sum(one.seconds for one in causes)
    more = f" and {numbers.plural(len(causes) - 1, 'other cause')}" if len(causes) > 1 else ""
    told = f"{numbers.plural(count, 'compilation')} not in the cache, {numbers.duration(seconds)}"
    return f"{told}: {format_cause(causes[0].cause, compared)}{more}"


def _stage(start: ColdStartData, name: str, begin: float, seconds: float) -> StartStage:
    whole = max(start.total, 1e-9)
    left = min(100.0, 100 * begin / whole)
    phases = sorted(start.phases.items(), key=lambda phase: -phase[1]) if name == "compile" else []
    return StartStage(
        name=NAMES.get(name, name),
        begins=numbers.duration(begin) if begin else f"0{numbers.SPACE}s",
        took=numbers.duration(seconds),
        start=round(left, 2),
        width=round(min(100 - left, 100 * seconds / whole), 2),
        shade=SHADES.get(name, MARK_SHADE),
        is_mark=name not in NAMES,
        said=", ".join(
            f"{phase.replace('_', ' ')} {numbers.duration(value)}"
            for phase, value in phases
            if value >= 0.005 * start.total
        ),
    )
