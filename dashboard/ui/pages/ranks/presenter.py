"""Table of a job's ranks, and the differences between ranks as text."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.common import clock
from dashboard.fleet.models import CompileEvent, Instance, InstanceState
from dashboard.fleet.selectors.compilations.cache_outcomes import derive_cache_answer
from dashboard.fleet.selectors.instances.instance_states import instance_state
from dashboard.regressions.judge.certain_facts import FRESH_MINUTES
from dashboard.regressions.judge.rank_divergence import (
    COUNTED_KINDS,
    Divergence,
    RankCompilation,
    find_divergences,
)
from dashboard.regressions.judge.text.ranks import describe_divergence
from dashboard.regressions.rank_facts import TRANSIENT_KINDS, make_rank, read_stage
from dashboard.vocabulary import numbers

PATTERN, GRAPHS_SHOWN = 24, 8
QUIET = (InstanceState.HEALTHY, InstanceState.WARMING)
LETTERS = {"hit": "H", "miss": "M", "bypass": "B", "": "–"}


@dataclass(frozen=True)
class RankDifference:
    """One difference; names come from the agent and are always escaped."""

    text: str
    certain: bool
    at: datetime
    passed: bool
    """Whether the difference had ended when it was observed, too long ago to know the current
    state."""


@dataclass(frozen=True)
class RankRow:
    """One rank; `apart` is True for a rank with a confirmed difference."""

    rank: int
    instance_id: str
    host: str
    node: str
    """The node if it differs from the host."""
    stage: str
    state: InstanceState
    first: int
    again: int
    seconds: str
    newest: str
    pattern: str
    answers: str
    graphs: str
    """Hash of each frame's first cache key: ranks with equal hashes compiled the same graphs; empty
    if not reported."""
    graphs_told: int
    another_graph: bool
    eager: str
    now: str
    seen: datetime
    apart: bool

    @property
    def calm(self) -> bool:
        """Whether the rank compiles like the others; phones show only host, state and last
        report."""
        return not (self.apart or self.another_graph or self.now)


@dataclass(frozen=True)
class RankTable:
    """All data of the template about one job."""

    rows: list[RankRow]
    lines: list[RankDifference]
    missing: int
    stages: int
    graphs: bool

    @property
    def urgent(self) -> list[RankRow]:
        """The rows in the order of the page: ranks that differ, then unhealthy ranks, each by
        rank."""
        return sorted(self.rows, key=lambda row: (not row.apart, row.state in QUIET, row.rank))

    @property
    def certain(self) -> int:
        """Number of current confirmed differences."""
        return sum(line.certain and not line.passed for line in self.lines)

    @property
    def passed(self) -> int:
        """Number of past confirmed differences."""
        return sum(line.certain and line.passed for line in self.lines)


def build_rank_table(
    instances: Sequence[Instance], compiled: Mapping[int, Sequence[CompileEvent]]
) -> RankTable:
    """Builds the table."""
    ranks = [
        make_rank(one, [_compiled(event) for event in compiled.get(one.pk, ())])
        for one in instances
    ]
    found = find_divergences(ranks)
    apart = {rank for one in found if one.certain for rank in one.ranks}
    other = {rank for one in found if one.kind == "graph" for rank in one.ranks}
    size = max((one.world_size for one in instances), default=0)
    return RankTable(
        rows=[
            _row(one, compiled.get(one.pk, ()), one.rank in apart, one.rank in other)
            for one in instances
        ],
        lines=[
            RankDifference(describe_divergence(one), one.certain, clock.at(one.at), _passed(one))
            for one in found
        ],
        missing=max(0, size - len(instances)),
        stages=len({rank.stage for rank in ranks}),
        graphs=any(event.cache_key for events in compiled.values() for event in events),
    )


def _passed(one: Divergence) -> bool:
    return one.kind in TRANSIENT_KINDS and clock.unix() - one.at > FRESH_MINUTES * 60


def _compiled(event: CompileEvent) -> RankCompilation:
    place = f"{event.file}:{event.line}" if event.file else ""
    return RankCompilation(
        event.at.timestamp(),
        event.frame,
        place,
        event.kind,
        event.outcome,
        event.cache_key,
        derive_cache_answer(event),
    )


def _graphs(events: Sequence[CompileEvent]) -> dict[tuple[str, int, str], str]:
    """The cache key of the first compilation of each frame, if reported."""
    first: dict[tuple[str, int, str], str] = {}
    for event in events:
        if event.kind in COUNTED_KINDS:
            first.setdefault((event.file, event.line, event.frame), event.cache_key)
    return {place: key for place, key in first.items() if key}


def _row(
    one: Instance, events: Sequence[CompileEvent], apart: bool, another_graph: bool
) -> RankRow:
    graphs = _graphs(events)
    kinds = Counter(event.kind for event in events)
    answers = [derive_cache_answer(event) for event in events]
    counted = Counter(answer for answer in answers if answer)
    compiling = (
        f"{one.compiling_frame or 'a frame'} for {numbers.duration(one.compiling_for)}"
        if one.compiling_for
        else ""
    )
    return RankRow(
        rank=one.rank,
        instance_id=one.instance_id,
        host=one.host,
        node=one.node if one.node != one.host else "",
        stage=read_stage(one),
        state=instance_state(one, clock.now()),
        first=kinds["first"],
        again=kinds["recompile"],
        seconds=numbers.duration(sum(event.total or 0.0 for event in events)) if events else "",
        newest=events[-1].compile_id if events else "",
        pattern="".join(LETTERS.get(answer, "?") for answer in answers[:PATTERN])
        + ("…" if len(answers) > PATTERN else ""),
        answers=", ".join(f"{count} {answer}" for answer, count in sorted(counted.items())),
        graphs=hashlib.sha256(repr(sorted(graphs.items())).encode("utf-8", "replace")).hexdigest()[
            :GRAPHS_SHOWN
        ]
        if graphs
        else "",
        graphs_told=len(graphs),
        another_graph=another_graph,
        eager=numbers.percent(one.eager_calls / one.known_calls) if one.known_calls else "",
        now=compiling,
        seen=one.last_seen_at,
        apart=apart,
    )
