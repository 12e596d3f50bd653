"""Rank facts: diverged ranks of one job as confirmed facts, from the newest reports of live
processes and from their compilations."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime
from threading import Lock

from compilewatch.wire.messages import STAGE

from dashboard.common import clock
from dashboard.fleet.fold.roles import is_uncounted_role
from dashboard.fleet.models import Instance
from dashboard.fleet.selectors.instances.instance_states import MIN_CALLS
from dashboard.fleet.selectors.jobs import (
    CompilationRow,
    LiveRank,
    R,
    read_compilation_rows,
    read_compile_watermark,
    select_newest_ranks,
)
from dashboard.regressions.judge.certain_facts import ObservedFact
from dashboard.regressions.judge.inputs import Arm
from dashboard.regressions.judge.rank_divergence import Rank, RankCompilation, find_divergences
from dashboard.regressions.judge.text.ranks import describe_divergence

MOST_RANKS_NAMED = 50
TRANSIENT_KINDS = ("more", "graph")
"""Divergences that end once they are observed: an hour later, they do not show whether the ranks
continued."""
MAX_CACHED_JOBS = 200

Mark = tuple[int, datetime | None]
_cache: OrderedDict[tuple[int, ...], tuple[Mark, dict[int, tuple[RankCompilation, ...]]]] = (
    OrderedDict()
)
_lock = Lock()


def read_rank_facts(*, instances: Iterable[R], arm: Arm) -> list[ObservedFact]:
    """One fact for each rank that certainly diverges from its job. Two queries per job; one if
    nothing was compiled."""
    jobs: dict[str, list[R]] = {}
    for one in instances:
        if one.job and one.world_size > 1 and not is_uncounted_role(one.role):
            jobs.setdefault(one.job, []).append(one)
    return [
        fact for job in sorted(jobs) for fact in _compare_job(select_newest_ranks(jobs[job]), arm)
    ]


def _compare_job(ranks: Sequence[R], arm: Arm) -> list[ObservedFact]:
    if len(ranks) < 2:
        return []
    compiled = read_rank_compilations(project_id=ranks[0].project_id, ranks=ranks)
    instance = {one.rank: one.instance_id for one in ranks}
    found = find_divergences(make_rank(one, compiled.get(one.pk, ())) for one in ranks)
    return [
        ObservedFact(
            "ranks_diverged",
            arm,
            instance[rank],
            clock.minute_of(one.at),
            one.about,
            describe_divergence(one),
            until=clock.minute_of(one.at) if one.kind in TRANSIENT_KINDS else None,
        )
        for one in found
        if one.certain
        for rank in one.ranks[:MOST_RANKS_NAMED]
    ]


def make_rank(one: Instance | LiveRank, compiled: Sequence[RankCompilation]) -> Rank:
    """A process as one rank of its job."""
    return Rank(
        rank=one.rank,
        seen_until=one.last_seen_at.timestamp(),
        compiled=tuple(compiled),
        compiling_frame=one.compiling_frame,
        compiling_for=one.compiling_for,
        eager_share=one.eager_calls / one.known_calls if one.known_calls >= MIN_CALLS else None,
        stage=read_stage(one),
        limits=tuple(
            str(item.get("frame") or "") for item in one.latched_eager if isinstance(item, dict)
        ),
    )


def read_stage(one: Instance | LiveRank) -> str:
    """The pipeline stage that a rank declares; empty if it declares none."""
    return str(one.components.get(STAGE, "")) if isinstance(one.components, dict) else ""


def read_rank_compilations(
    *, project_id: int, ranks: Sequence[R]
) -> dict[int, tuple[RankCompilation, ...]]:
    """The compilations of each rank, by Instance.id. Read again only if there are more than at this
    process's previous read."""
    key, mark = (
        tuple(one.pk for one in ranks),
        read_compile_watermark(project_id=project_id, instances=ranks),
    )
    with _lock:
        held = _cache.pop(key, None)
    if held is None or held[0] != mark:
        found: dict[int, list[RankCompilation]] = {}
        for row in read_compilation_rows(project_id=project_id, instances=ranks) if mark[0] else ():
            found.setdefault(row.instance, []).append(_make_compilation(row))
        held = mark, {pk: tuple(events) for pk, events in found.items()}
    with _lock:
        _cache[key] = held
        while len(_cache) > MAX_CACHED_JOBS:
            _cache.popitem(last=False)
    return held[1]


def _make_compilation(row: CompilationRow) -> RankCompilation:
    place = f"{row.file}:{row.line}" if row.file else ""
    return RankCompilation(
        row.at.timestamp(), row.frame, place, row.kind, row.outcome, row.key, row.cache
    )
