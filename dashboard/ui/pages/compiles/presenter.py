"""Compiles tab: compilations over time, recompiles per frame, caches, phases, memory, compiled
share and numerical parity of one version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict

from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.selectors.compilations.compilations import VersionCompilation
from dashboard.ui.charts.compilation_bars import (
    MOST_BARS,
    CompilationBars,
    build_compilation_bars,
)
from dashboard.ui.charts.phase_icicle import GraphPhases, PhaseIcicle, build_phase_icicle
from dashboard.ui.charts.time_axis import choose_step
from dashboard.ui.charts.version_styles import VersionStyle, assign_version_styles
from dashboard.ui.http.paging import TablePage, paginate
from dashboard.ui.http.sortable_table import Column, Head, Order
from dashboard.ui.http.time_range import SINCE_DEPLOYMENT, TimeRange, replace_query
from dashboard.ui.pages.compiles.cache_misses import MissesCard, misses_card
from dashboard.ui.pages.compiles.caches_table import CacheRow, list_cache_rows
from dashboard.ui.pages.compiles.compilations import Compilation, list_compilations
from dashboard.ui.pages.compiles.compiled_share import CompiledShare, compute_compiled_share
from dashboard.ui.pages.compiles.frame_recompiles import (
    MOST_BINS,
    FrameMatrix,
    FrameRow,
    GuardAdvice,
    build_frame_matrix,
    find_limit_times,
    find_minute,
    list_guard_advice,
)
from dashboard.ui.pages.compiles.golden_batches import ParityCard, parity_card
from dashboard.ui.pages.compiles.kernels import KernelsCard, kernels_card
from dashboard.ui.pages.compiles.live_numerics import LiveNumerics, list_live_numerics
from dashboard.ui.pages.compiles.memory_table import MemoryRow, memory_rows
from dashboard.ui.pages.compiles.queries import CompilesData
from dashboard.ui.pages.compiles.recompile_headroom import (
    FrameHeadroom,
    format_nearest_limit,
    list_frame_headroom,
)
from dashboard.ui.pages.compiles.telemetry_gaps import TelemetryGaps, list_telemetry_gaps
from dashboard.vocabulary import numbers

FRAMES, LONGEST, LISTED = 6, 3, 40
ALL = "all"
COLUMNS = (
    Column("Ended", sort="at", most_first=True),
    Column("Frame"),
    Column("Kind and reason"),
    Column("Duration", sort="took", right=True, most_first=True),
    Column("Phases"),
    Column("Cache"),
    Column("Blocked a request"),
)


@dataclass(frozen=True)
class CompilationList:
    """The rows of one page; `all_url` lists every compilation, empty where all are listed."""

    rows: list[Compilation]
    heads: list[Head]
    page: TablePage
    total: int
    all_url: str


@dataclass
class CompilesTab:
    """All data of the template; `span` is the drawn range in minutes, `last` exclusive."""

    data: CompilesData
    span: tuple[int, int]
    served: CompiledShare
    bars: CompilationBars | None
    waited: int
    matrix: FrameMatrix
    frames: list[FrameRow]
    frames_page: TablePage
    advice: list[GuardAdvice]
    nearest: str
    nearest_frame: str
    frames_known: bool
    caches: list[CacheRow]
    misses: MissesCard
    icicle: PhaseIcicle | None
    longest: CompilationList
    memory: list[MemoryRow]
    parity: ParityCard
    live_calls: list[LiveNumerics]
    kernels: KernelsCard | None
    gaps: TelemetryGaps
    styles: list[VersionStyle]
    own_span: bool
    """Whether cache answers of the baseline are those since its own deployment."""

    @property
    def recorded(self) -> str:
        """Number and time of CUDA graph recordings; empty without recordings."""
        graphs, seconds = self.data.version.recordings
        return f"{numbers.number(graphs)}, {numbers.duration(seconds)}" if graphs else ""

    @property
    def failed(self) -> int:
        """Number of golden batches and sampled regions that failed."""
        return sum(bool(one.failed) for one in self.parity.batches) + sum(
            one.failed for one in self.live_calls
        )

    @property
    def matrix_step(self) -> str:
        """The length of a bin of the matrix."""
        return numbers.format_minutes(self._step)

    @property
    def _step(self) -> int:
        return choose_step(self.span[1] - self.span[0], MOST_BINS)


def compiles_tab(data: CompilesData, *, chosen: TimeRange, query: QueryDict) -> CompilesTab:
    """Builds the tab for a range."""
    version, own = data.version, data.version.own
    first, last = _span(version.events, version.deployment.started_minute, chosen)
    events = [event for event in version.events if first <= find_minute(event) < last]
    headroom = list_frame_headroom(version.events, own)
    matrix = build_frame_matrix(headroom, events, _bins(first, last, MOST_BINS))
    paged = paginate(query, total=len(matrix.rows), size=FRAMES, name="fpage")
    frames = matrix.rows[paged.first : paged.first + FRAMES]
    misses = misses_card(own, version.processes, version.answers)
    styles = assign_version_styles(
        judged=version.version.pk,
        baseline=version.baseline.id if version.baseline else None,
        newest_first=[
            (version.version.pk, version.version.name),
            *([(version.baseline.id, version.baseline.name)] if version.baseline else []),
        ],
    )
    return CompilesTab(
        data=data,
        span=(first, last),
        served=compiled_share_of(data),
        bars=_bars(events, headroom, first, last),
        waited=sum(event.in_request for event in events),
        matrix=matrix,
        frames=frames,
        frames_page=paged,
        advice=list_guard_advice(frames, events, data.findings),
        nearest=format_nearest_limit(headroom),
        nearest_frame=headroom[0].frame if headroom else "",
        frames_known=bool(headroom),
        caches=list_cache_rows(
            data.answered,
            version=version.version.pk,
            baseline=version.baseline.id if version.baseline else None,
        ),
        misses=misses,
        icicle=build_phase_icicle(_graphs(events)),
        longest=_longest(data, events, misses, query),
        memory=memory_rows(styles, data.memory),
        parity=parity_of(data),
        live_calls=live_calls_of(data),
        kernels=kernels_card(own),
        gaps=list_telemetry_gaps(own),
        styles=styles,
        own_span=chosen.key == SINCE_DEPLOYMENT,
    )


def compiled_share_of(data: CompilesData) -> CompiledShare:
    """The compiled share of the version."""
    version = data.version
    nothing = any(
        finding.kind == "compiled_nothing" and version.version.pk in finding.versions
        for finding in data.findings
    )
    return compute_compiled_share(
        version.own_calls,
        version.served,
        version.environment,
        version.budgets.served,
        nothing=nothing,
    )


def parity_of(data: CompilesData) -> ParityCard:
    """The golden batches of the version."""
    version = data.version
    return parity_card(
        version.parities,
        version.own,
        version=version.version.pk,
        baseline=version.baseline.name if version.baseline else "",
        baseline_id=version.baseline.id if version.baseline else None,
    )


def live_calls_of(data: CompilesData) -> list[LiveNumerics]:
    """The sampled live calls of the version."""
    version = data.version
    return list_live_numerics(
        version.parities,
        version.own,
        version=version.version.pk,
        baseline=version.baseline.name if version.baseline else "",
        baseline_id=version.baseline.id if version.baseline else None,
    )


def _span(
    events: Sequence[VersionCompilation], deployed: int, chosen: TimeRange
) -> tuple[int, int]:
    """The range, without the time before the first compilation if it is the range since the
    deployment."""
    first, last = chosen.first, chosen.last + (1 if chosen.live else 0)
    if chosen.key == SINCE_DEPLOYMENT:
        first = min([deployed, *(find_minute(event) for event in events[:1])])
    return first, max(last, first + 1)


def _bins(first: int, last: int, most: int) -> TimeBins:
    """Bins at round minutes that cover the range."""
    step = choose_step(last - first, most)
    start = first // step * step
    return TimeBins(start, start + -(-(last - start) // step) * step, step)


def _bars(
    events: Sequence[VersionCompilation],
    headroom: Sequence[FrameHeadroom],
    first: int,
    last: int,
) -> CompilationBars | None:
    if not events:
        return None
    limits = find_limit_times(headroom, events)
    several = len({frame for _, frame in limits}) > 1
    return build_compilation_bars(
        ((find_minute(event), event.kind) for event in events),
        _bins(first, last, MOST_BARS),
        [
            (minute, f"recompile limit reached{f' by {frame[:24]}' if several else ''}")
            for minute, frame in limits
        ],
    )


def _graphs(events: Sequence[VersionCompilation]) -> list[GraphPhases]:
    """Compile seconds by frame and phase."""
    graphs: dict[tuple[str, str, int], list[VersionCompilation]] = {}
    for event in events:
        graphs.setdefault((event.frame, event.file, event.line), []).append(event)
    found = []
    for (frame, file, line), own in graphs.items():
        phases: dict[str, float] = {}
        for event in own:
            for name, value in (event.phases or {}).items():
                if name != "total" and isinstance(value, int | float) and value > 0:
                    phases[name] = phases.get(name, 0.0) + value
        seconds = max(sum(event.seconds for event in own), sum(phases.values()))
        place = f"{file}:{line}" if file else ""
        found.append(GraphPhases(frame or "a frame", place, seconds, len(own), phases))
    return found


def _longest(
    data: CompilesData,
    events: Sequence[VersionCompilation],
    misses: MissesCard,
    query: QueryDict,
) -> CompilationList:
    order = Order.read(query, COLUMNS, "-took", name="csort")
    everything = query.get("compilations") == ALL
    page = paginate(query, total=len(events), size=LISTED if everything else LONGEST, name="cpage")
    rows = order.sort_rows(events, {"at": lambda one: one.at, "took": lambda one: one.total})
    processes = {one.id: (one.name, one.started_at) for one in data.version.own}
    return CompilationList(
        rows=list_compilations(rows[page.first : page.first + page.size], processes, misses.causes),
        heads=order.heads(query, COLUMNS, name="csort", page="cpage"),
        page=page,
        total=len(events),
        all_url=""
        if everything or len(events) <= LONGEST
        else f"{replace_query(query, compilations=ALL, cpage='')}#longest",
    )
