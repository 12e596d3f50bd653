"""Causes of cold starts: the first configuration difference from the last warm start, its origin
and its cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compilewatch.wire.cache_miss_causes import (
    EMPTY_FOLDER,
    ENGINE_CAUSE,
    ENVIRONMENT,
    FOLDER,
    GPU_OR_DRIVER,
    LACKING_FOLDER,
    NO_EARLIER_RUN,
    NOTHING_DIFFERS,
    ONLY_AOT_PREFIX,
    OPTIONS,
    OTHER_FOLDER,
    OTHER_SIZES,
    THREAD_COUNT,
    UNWRITABLE_FOLDER,
    VERSIONS,
    WAS_UNWRITABLE,
    engine_component,
    is_changed,
)

from dashboard.fleet.selectors.compilations.cache_miss_causes import (
    CacheClient,
    choose_reference,
    explain_miss,
)
from dashboard.fleet.selectors.compilations.cache_miss_costs import MissCost
from dashboard.fleet.selectors.compilations.compilations import ProcessCacheAnswers
from dashboard.fleet.selectors.instances.cold_starts import ProcessStart
from dashboard.vocabulary import numbers

SHOWN = 6
FACTORS_SHOWN = 4
EXPLAINED = 160
"""Maximum number of processes with misses, newest first; older processes are omitted."""
OF_NO_VERSION = ("", NO_EARLIER_RUN, NOTHING_DIFFERS, OTHER_SIZES, THREAD_COUNT, GPU_OR_DRIVER)
"""Causes that need not come from a version: the host or the traffic can cause them."""


@dataclass(frozen=True)
class ExplainedMiss:
    """One process with misses: the cause, the compared start, whether that start was warm, and the
    cost in seconds."""

    process: ProcessStart
    cause: str
    against: str
    should_have_been_warm: bool
    brought: str
    brought_at: datetime | None
    compilations: int
    seconds: float

    @property
    def gpu_seconds(self) -> float:
        """Seconds times the number of waiting GPUs."""
        return self.seconds * self.process.gpus


@dataclass(frozen=True)
class MissRow:
    """The processes of one cause, described by the newest of them."""

    newest: ExplainedMiss
    processes: int
    compilations: int
    seconds: float
    gpu_seconds: float
    share: float

    @property
    def cost(self) -> str:
        """Seconds, and GPU-seconds if there are GPUs."""
        return numbers.duration(self.seconds)

    @property
    def gpu_cost(self) -> str:
        """The cost in GPU-seconds."""
        return numbers.number(round(self.gpu_seconds)) if self.gpu_seconds else "no GPU"

    @property
    def width(self) -> float:
        """Width of the bar in percent."""
        return round(100 * self.share, 1)

    @property
    def percent(self) -> str:
        """Share of the lost seconds."""
        return numbers.percent(self.share)


@dataclass(frozen=True)
class Factor:
    """A costly cause across the versions of a model or the models of a project; `where` names
    them."""

    cause: str
    seconds: float
    gpu_seconds: float
    share: float
    where: str

    @property
    def text(self) -> str:
        """Share of the missed seconds, with the cost."""
        gpu = f", {numbers.number(round(self.gpu_seconds))} GPU-s" if self.gpu_seconds else ""
        return (
            f"{numbers.percent(self.share)} of the missed seconds: "
            f"{numbers.duration(self.seconds)}{gpu}"
        )


@dataclass(frozen=True)
class MissesCard:
    """`cold` starts were expected to be warm, because an earlier start on the same GPU type was."""

    rows: list[MissRow] = field(default_factory=list)
    more: int = 0
    missed: int = 0
    cold: int = 0
    seconds: float = 0.0
    factors: list[Factor] = field(default_factory=list)
    pooled: int = 0
    processes: int = 0
    telling: int = 0
    """Number of own processes with known cache results; older agents do not report them."""
    causes: dict[int, str] = field(default_factory=dict)
    """The cause and the compared start of each own process, by instance."""


def misses_card(
    own: Sequence[ProcessStart],
    everyone: Sequence[ProcessStart],
    answers: Sequence[ProcessCacheAnswers],
) -> MissesCard:
    """Misses of the version's own processes, and the most costly causes of all known processes."""
    by_process: dict[int, list[ProcessCacheAnswers]] = {}
    for one in answers:
        by_process.setdefault(one.instance_id, []).append(one)
    known = {one.id: _process(one, by_process.get(one.id, [])) for one in everyone}
    mine = {one.id for one in own}
    missed = [one for one in everyone if any(answer.miss for answer in by_process.get(one.id, []))]
    chosen = sorted(missed, key=lambda one: one.id not in mine)[:EXPLAINED]
    explained = [_explained(one, by_process[one.id], known, everyone) for one in chosen]
    of_own = [one for one in explained if one.process.id in mine]
    rows = _grouped(of_own)
    return MissesCard(
        rows=rows[:SHOWN],
        more=max(0, len(rows) - SHOWN),
        missed=len(of_own),
        cold=sum(one.should_have_been_warm for one in of_own),
        seconds=sum(one.seconds for one in of_own),
        factors=_factors(explained),
        pooled=len(explained),
        processes=len(own),
        telling=sum(known[one.id].hits + known[one.id].misses > 0 for one in own),
        causes={
            one.process.id: f"{one.cause}, compared with {one.against}"
            for one in of_own
            if one.against
        },
    )


def split_start_times(
    own: Iterable[ProcessStart], answers: Iterable[ProcessCacheAnswers]
) -> tuple[list[float], list[float], list[float]]:
    """Durations of starts that mostly missed, of the other starts, and of starts without cache
    results."""
    telling: set[int] = set()
    lost: dict[int, float] = {}
    kept: dict[int, float] = {}
    for one in answers:
        telling |= {one.instance_id} if one.hits or one.misses else set()
        lost[one.instance_id] = lost.get(one.instance_id, 0.0) + one.missed_seconds
        kept[one.instance_id] = kept.get(one.instance_id, 0.0) + one.seconds - one.missed_seconds
    cold: list[float] = []
    warm: list[float] = []
    untold: list[float] = []
    for process in own:
        if process.start:
            missed = lost.get(process.id, 0.0) > kept.get(process.id, 0.0)
            (untold if process.id not in telling else cold if missed else warm).append(
                process.start.total
            )
    return cold, warm, untold


def _process(one: ProcessStart, answers: Iterable[ProcessCacheAnswers]) -> CacheClient:
    found = CacheClient(
        one.id, one.name, one.gpu, one.rank, one.started_at, components=one.components
    )
    for answer in answers:
        found.hits += answer.hits
        found.misses += answer.misses
        if answer.key:
            found.keys.add(answer.key)
    return found


def _explained(
    one: ProcessStart,
    answers: Sequence[ProcessCacheAnswers],
    known: Mapping[int, CacheClient],
    everyone: Sequence[ProcessStart],
) -> ExplainedMiss:
    missed = sorted(
        (answer for answer in answers if answer.miss), key=lambda answer: -answer.missed_seconds
    )
    told = next((answer.miss for answer in missed if answer.miss not in (NO_EARLIER_RUN, "")), "")
    reference = choose_reference(known[one.id], known.values())
    other = next(
        (process for process in everyone if reference and process.id == reference.id), None
    )
    found = explain_miss(known[one.id], reference)
    cause = told or found.cause
    compiling = [
        process for process in everyone if known[process.id].hits + known[process.id].misses
    ]
    brought, at = _brought(cause, one, other, compiling)
    return ExplainedMiss(
        process=one,
        cause=cause,
        against=f"the agent’s last run on {one.host or one.name}" if told else found.against,
        should_have_been_warm=bool(reference and reference.warm),
        brought=brought,
        brought_at=at,
        compilations=sum(answer.compilations for answer in missed),
        seconds=sum(answer.missed_seconds or answer.seconds for answer in missed),
    )


def _brought(
    cause: str, one: ProcessStart, other: ProcessStart | None, everyone: Sequence[ProcessStart]
) -> tuple[str, datetime | None]:
    """The first process with the changed value after the warm start; if no component contains the
    cause, the version that changed it."""
    name = find_component(cause, one.components)
    if other is not None and name in {**one.components, **other.components}:
        alike = [
            p
            for p in everyone
            if p.gpu == one.gpu and p.components.get(name) == one.components.get(name)
        ]
        if is_changed(name, one.components, other.components):
            same = [p for p in alike if p.started_at > other.started_at]
        else:  # the warm start had the value too: an earlier process of the version introduced it
            same = [p for p in alike if p.version_id == one.version_id]
        first = min(same, key=lambda process: (process.started_at, process.id), default=one)
        return f"{first.version} on {first.host or first.name}", first.started_at
    if cause in (EMPTY_FOLDER, LACKING_FOLDER):
        return f"a folder without it on {one.host or one.name}", None
    if cause in (UNWRITABLE_FOLDER, WAS_UNWRITABLE):
        return f"a folder that may not be written on {one.host or one.name}", None
    if cause not in OF_NO_VERSION and other is not None and other.version_id != one.version_id:
        return f"{one.version}, after {other.version}", None
    return "", None


def find_component(cause: str, components: Mapping[str, str]) -> str:
    """The component that a cause names; empty if the cause names none."""
    cause = cause.removeprefix(ONLY_AOT_PREFIX)
    if cause == OTHER_FOLDER:
        return FOLDER
    if cause.startswith(ENVIRONMENT):
        return cause
    if cause.startswith(ENGINE_CAUSE):
        return engine_component(cause)
    module, _, option = cause.partition(": ")
    if module in OPTIONS:
        return f"{module} {option.partition(' and ')[0]}"
    return next(
        (name for name in VERSIONS if cause.startswith(f"{name} ") and name in components), ""
    )


def _grouped(explained: Iterable[ExplainedMiss]) -> list[MissRow]:
    """Rows by cause, most costly first."""
    groups: dict[str, list[ExplainedMiss]] = {}
    for one in explained:
        groups.setdefault(one.cause or NOTHING_DIFFERS, []).append(one)
    whole = sum(one.seconds for group in groups.values() for one in group)
    rows = [
        MissRow(
            newest=max(group, key=lambda one: (one.process.started_at, one.process.id)),
            processes=len(group),
            compilations=sum(one.compilations for one in group),
            seconds=(seconds := sum(one.seconds for one in group)),
            gpu_seconds=sum(one.gpu_seconds for one in group),
            share=seconds / whole if whole else 0.0,
        )
        for group in groups.values()
    ]
    return sorted(rows, key=lambda row: (-row.seconds, row.newest.cause))


def sum_factors(costs: Sequence[MissCost]) -> list[Factor]:
    """The most costly causes across all models of a project."""
    whole = sum(one.seconds for one in costs)
    return [
        Factor(
            one.cause,
            one.seconds,
            one.gpu_seconds,
            one.seconds / whole if whole else 0.0,
            _first_three(one.models),
        )
        for one in costs[:FACTORS_SHOWN]
    ]


def _first_three(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _factors(explained: Sequence[ExplainedMiss]) -> list[Factor]:
    rows = _grouped(explained)
    found = []
    for row in rows[:FACTORS_SHOWN]:
        names = list(
            dict.fromkeys(one.process.version for one in explained if one.cause == row.newest.cause)
        )
        found.append(
            Factor(row.newest.cause, row.seconds, row.gpu_seconds, row.share, _first_three(names))
        )
    return found
