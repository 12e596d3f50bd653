"""Version page: compiled share, starts, compilations, cache misses, payback and telemetry gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compilewatch.wire.messages import HELPS_ALONE

from dashboard.common import clock
from dashboard.fleet.metrics.recompile_reasons import REPEAT_REASONS, reason_name
from dashboard.fleet.selectors.compilations.compilations import VersionCompilation
from dashboard.fleet.selectors.instances.cold_starts import ProcessStart
from dashboard.ui.charts.compile_timeline import (
    CompileTimeline,
    TimelineCompilation,
    build_compile_timeline,
    format_counts,
)
from dashboard.ui.pages.compiles.cache_misses import MissesCard, misses_card, split_start_times
from dashboard.ui.pages.compiles.compiled_share import CompiledShare, compute_compiled_share
from dashboard.ui.pages.compiles.golden_batches import ParityCard, parity_card, parity_json
from dashboard.ui.pages.compiles.kernels import KernelsCard, kernels_card, kernels_json
from dashboard.ui.pages.compiles.live_numerics import (
    LiveNumerics,
    count_shadow_calls,
    list_live_numerics,
    live_json,
)
from dashboard.ui.pages.compiles.recompile_headroom import (
    FrameHeadroom,
    format_nearest_limit,
    list_frame_headroom,
)
from dashboard.ui.pages.findings.columns import FindingsColumn, findings_columns
from dashboard.ui.pages.startup.payback import Payback, compute_payback
from dashboard.ui.pages.startup.rollout_forecast import (
    MOST_REPLICAS,
    Forecast,
    WarmCacheEstimate,
    estimate_warm_cache,
    forecast_rollouts,
)
from dashboard.ui.pages.startup.start_times import (
    StartsCard,
    compute_compiled_after,
    start_json,
    starts_card,
)
from dashboard.ui.pages.version.queries import VersionData
from dashboard.vocabulary import numbers

LISTED = 40
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
class EventRow:
    """One compilation in the table of the timeline."""

    event: VersionCompilation
    process: str
    after: str
    took: str

    @property
    def why(self) -> str:
        """The kind of the reason."""
        return reason_name(self.event.reason_kind) if self.event.reason_kind else ""


@dataclass
class VersionPage:
    """All data of the template."""

    facts: VersionData
    served: CompiledShare
    starts: StartsCard
    forecasts: list[Forecast]
    warm_cache: WarmCacheEstimate
    replicas: int
    at_once: int
    line: CompileTimeline | None
    line_counts: str
    events: list[EventRow]
    waited: int
    room: list[FrameHeadroom]
    nearest: str
    misses: MissesCard
    payback: Payback
    parity: ParityCard
    live_calls: list[LiveNumerics]
    kernels: KernelsCard | None
    columns: list[FindingsColumn]
    blind: list[BlindSpot]
    silent: int
    ended: int

    @property
    def untelling(self) -> int:
        """Number of processes whose older agents do not report capabilities."""
        return sum(not one.capabilities for one in self.facts.own)

    @property
    def untelling_words(self) -> str:
        """`untelling` as a sentence."""
        whole = numbers.plural(len(self.facts.own), "process", "processes")
        return (
            f"{self.untelling} of {whole} run an older agent that does not report its "
            "capabilities. Missing values of these processes are unknown, not zero."
        )

    @property
    def live(self) -> bool:
        """Whether the version has traffic now."""
        return self.facts.standing.deployment.ended_minute is None

    @property
    def phase_key(self) -> list[tuple[str, str]]:
        """The phases of the start bars in order; all marks of the job are one entry."""
        named = {
            (step.name if not step.is_mark else "Marks of the job", step.css)
            for step in self.starts.steps
            if step.css != "px"
        }
        order = [
            step.name if not step.is_mark else "Marks of the job" for step in self.starts.steps
        ]
        return sorted(named, key=lambda pair: order.index(pair[0]))

    @property
    def warm_up(self) -> str:
        """The first minutes of processes that the verdict excludes, with their share; empty if
        nothing is excluded."""
        said = self.facts.standing.said
        excluded = said.warm_up if said else None
        if excluded is None or not excluded.candidate.excluded_minutes:
            return ""
        source = f" ({excluded.source_said})" if excluded.source_said else ""
        return (
            f"first {numbers.format_minutes(excluded.minutes)} of each process{source} not "
            f"compared: {excluded.candidate.share_said} of its minutes"
        )

    @property
    def adoption(self) -> str:
        """The version's share of recent calls."""
        return numbers.percent(self.served.adoption) if self.served.adoption is not None else ""

    @property
    def recorded(self) -> str:
        """Number and time of CUDA graph recordings; empty without recordings."""
        graphs, seconds = self.facts.recordings
        return f"{numbers.number(graphs)}, {numbers.duration(seconds)}" if graphs else ""

    @property
    def events_more(self) -> int:
        """Number of compilations that are in the files but not in the table."""
        return max(0, len(self.facts.events) - len(self.events))


def version_page(
    facts: VersionData,
    *,
    instance: int | None = None,
    replicas: int | None = None,
    at_once: int | None = None,
) -> VersionPage:
    """Builds the page. `instance` selects the start with details; `replicas` and `at_once` are the
    inputs of the forecast."""
    own, minute = facts.own, clock.minute_of(facts.now.timestamp())
    live = [one for one in own if one.last_minute >= minute - 5 and not one.ended]
    ended = sum(one.ended for one in own)
    wanted = min(max(1, replicas or len(live) or len(own) or 1), MOST_REPLICAS)
    line, rows = _line(facts.events, own)
    room = list_frame_headroom(facts.events, own)
    cold, warm, untold = split_start_times(own, facts.answers)
    misses = misses_card(own, facts.processes, facts.answers)
    pair = (facts.version.pk, facts.version.name), facts.standing.baseline
    return VersionPage(
        facts=facts,
        served=compute_compiled_share(
            facts.own_calls,
            facts.served,
            facts.environment,
            facts.budgets.served,
            nothing=_nothing(facts),
        ),
        starts=starts_card(own, facts.theirs, budget=facts.budgets.cold_start, wanted=instance),
        forecasts=forecast_rollouts(cold, warm, wanted, at_once, untold),
        warm_cache=estimate_warm_cache(cold, warm, missed=misses.seconds, starts=misses.missed),
        replicas=wanted,
        at_once=min(max(1, at_once or wanted), wanted),
        line=line,
        line_counts=format_counts(_compiling(facts.events, own)),
        events=rows,
        waited=sum(event.in_request for event in facts.events),
        room=room,
        nearest=format_nearest_limit(room),
        misses=misses,
        payback=compute_payback(
            facts.events,
            own,
            facts.own_calls,
            facts.served,
            count_shadow_calls(facts.parities, pair[0][0]),
            facts.recordings,
        ),
        parity=parity_card(
            facts.parities,
            own,
            version=pair[0][0],
            baseline=pair[1].name if pair[1] else "",
            baseline_id=pair[1].id if pair[1] else None,
        ),
        live_calls=list_live_numerics(
            facts.parities,
            own,
            version=pair[0][0],
            baseline=pair[1].name if pair[1] else "",
            baseline_id=pair[1].id if pair[1] else None,
        ),
        kernels=kernels_card(own),
        columns=findings_columns(
            facts.findings, judged=pair[0], baseline=(pair[1].id, pair[1].name) if pair[1] else None
        ),
        blind=_blind(own),
        silent=len(own) - len(live) - ended,
        ended=ended,
    )


def _nothing(facts: VersionData) -> bool:
    """Whether the agents reported that compilation was requested and nothing was compiled."""
    return any(
        finding.kind == "compiled_nothing" and facts.version.pk in finding.versions
        for finding in facts.findings
    )


def _compiling(
    events: Sequence[VersionCompilation], own: Sequence[ProcessStart]
) -> list[TimelineCompilation]:
    places = {one.id: (place, one) for place, one in enumerate(own)}
    return [
        TimelineCompilation(
            kind=event.kind,
            end=event.at.timestamp() - process.started_at.timestamp(),
            seconds=event.seconds,
            in_request=event.in_request,
            failed=event.outcome != "ok",
            label=f"{event.frame or 'a frame'} on {process.name}{_because(event)}",
            row=place,
        )
        for event in events
        if event.instance_id in places
        for place, process in (places[event.instance_id],)
    ]


def _because(event: VersionCompilation) -> str:
    """The reason of a repeated compilation without a failed guard."""
    return (
        f", {reason_name(event.reason_kind).lower()}" if event.reason_kind in REPEAT_REASONS else ""
    )


def _line(
    events: Sequence[VersionCompilation], own: Sequence[ProcessStart]
) -> tuple[CompileTimeline | None, list[EventRow]]:
    compiling = _compiling(events, own)
    names = {one.id: one for one in own}
    rows = [
        EventRow(
            event,
            process.name if process else "an earlier process",
            numbers.duration(max(0.0, event.at.timestamp() - process.started_at.timestamp()))
            if process
            else "",
            numbers.duration(event.total) if event.total is not None else "not known",
        )
        for event in list(reversed(events))[:LISTED]
        for process in (names.get(event.instance_id),)
    ]
    return (
        build_compile_timeline(compiling, served=compute_compiled_after(own)) if compiling else None
    ), rows


def _blind(own: Iterable[ProcessStart]) -> list[BlindSpot]:
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
    return sorted(rows, key=lambda row: (-row.processes, row.name))


def version_json(page: VersionPage) -> dict[str, Any]:
    """The numbers of the page as JSON; unknown values are null."""
    facts, standing = page.facts, page.facts.standing
    return {
        "model": facts.model.name,
        "version": facts.version.name,
        "environment": facts.environment,
        "simulated": facts.model.simulated,
        "verdict": asdict(standing.said) if standing.said else None,
        "baseline": standing.baseline.name if standing.baseline else None,
        "live": page.live,
        "served": _served_json(page.served),
        "why_eager": facts.why_eager.as_dict(),
        "cold_starts": start_json(page.starts),
        "forecast": [{**asdict(one), "estimate": True} for one in page.forecasts],
        "warm_cache_saves": {**asdict(page.warm_cache), "estimate": True},
        "compilations": {
            "known": len(facts.events),
            "cut": facts.events_cut,
            "in_requests": page.waited,
        },
        "cuda_graph_recordings": {
            "count": facts.recordings.graphs,
            "seconds": facts.recordings.seconds,
        },
        "headroom": [
            {
                "frame": row.frame,
                "place": row.place,
                "entries": row.entries.count,
                "limit": row.entries.limit,
                "latched": row.latched,
            }
            for row in page.room
        ],
        "known_of": {
            "processes": len(facts.own),
            "starts": page.starts.count,
            "caches": page.misses.telling if facts.answers else None,
            "signals": len(facts.own) - page.untelling,
        },
        "misses": [
            {
                "cause": row.newest.cause,
                "against": row.newest.against,
                "brought_by": row.newest.brought or None,
                "processes": row.processes,
                "compilations": row.compilations,
                "seconds": row.seconds,
                "gpu_seconds": row.gpu_seconds,
            }
            for row in page.misses.rows
        ],
        "payback": _payback_json(page.payback),
        "parity": parity_json(page.parity),
        "live_calls": live_json(page.live_calls),
        "kernels": kernels_json(page.kernels),
        "findings": {column.key: column.total for column in page.columns},
        "blind": [asdict(one) for one in page.blind],
    }


def _served_json(one: CompiledShare) -> Mapping[str, Any]:
    return {
        **asdict(one),
        "share": one.share,
        "recent": one.recent,
        "used": one.used,
        "burn": one.burn,
    }


def _payback_json(one: Payback) -> Mapping[str, Any]:
    return {
        "unit": one.unit,
        "spent": one.spent,
        "saved": one.saved,
        "net": one.net,
        "break_even_calls": one.break_even,
        "reference_at": one.reference_at,
        "estimate": True,
    }


def start_table(page: VersionPage) -> list[list[Any]]:
    """One row per stage of the drawn start, in seconds since process start."""
    name = page.starts.chosen.process.name if page.starts.chosen else ""
    rows = [
        [name, step.name, round(step.begin, 3), round(step.seconds, 3)]
        for step in page.starts.steps
    ]
    return [["instance", "phase", "begins at (s)", "took (s)"], *rows]


def version_table(page: VersionPage) -> list[list[Any]]:
    """One row per compilation, including those that the timeline omits."""
    processes = {one.id: one for one in page.facts.own}
    rows: list[list[Any]] = [
        [
            *(
                "time",
                "instance",
                "seconds after start",
                "frame",
                "place",
                "kind",
                "outcome",
                "seconds",
                "in a request",
                "missed",
            ),
            *("reason", "cache entries", "limit"),
        ]
    ]
    for event in page.facts.events:
        process = processes.get(event.instance_id)
        after = round(event.at.timestamp() - process.started_at.timestamp(), 3) if process else None
        place = f"{event.file}:{event.line}" if event.file else ""
        waited = "yes" if event.in_request else "no"
        name = process.name if process else ""
        told = (
            event.frame,
            place,
            event.kind,
            event.outcome,
            event.total,
            waited,
            event.miss,
            event.reason_kind,
        )
        rows.append([event.at.isoformat(), name, after, *told, event.entries, event.entry_limit])
    return rows
