"""Ranks of one job that went apart, as certain facts: read off the newest reports of live processes and off what they compiled."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime
from threading import Lock

from compilewatch.wire.messages import STAGE

from dashboard.common import clock
from dashboard.fleet.fold.roles import never_counts
from dashboard.fleet.models import Instance
from dashboard.fleet.selectors.instances.instance_states import ENOUGH_CALLS
from dashboard.fleet.selectors.jobs import CompiledRow, LiveRank, R, compiled_mark, compiled_rows, newest_ranks
from dashboard.regressions.judge.certain_facts import Fact
from dashboard.regressions.judge.inputs import Arm
from dashboard.regressions.judge.rank_divergence import Compiled, Rank, divergences
from dashboard.regressions.judge.text.ranks import divergence_words

MOST_RANKS_NAMED = 50
PASSING = ("more", "graph")
"""What is over once it was seen: whether the ranks went on, nobody can tell from it an hour later."""
KEPT = 200

Mark = tuple[int, datetime | None]
_known: OrderedDict[tuple[int, ...], tuple[Mark, dict[int, tuple[Compiled, ...]]]] = OrderedDict()
_guard = Lock()


def rank_facts(*, instances: Iterable[R], arm: Arm) -> list[Fact]:
    """One fact for each rank that is apart from the others of its job for certain; two queries a job, one where nothing was compiled."""
    jobs: dict[str, list[R]] = {}
    for one in instances:
        if one.job and one.world_size > 1 and not never_counts(one.role):
            jobs.setdefault(one.job, []).append(one)
    return [fact for job in sorted(jobs) for fact in _of_job(newest_ranks(jobs[job]), arm)]


def _of_job(ranks: Sequence[R], arm: Arm) -> list[Fact]:
    if len(ranks) < 2:
        return []
    compiled = ranks_compilations(project_id=ranks[0].project_id, ranks=ranks)
    instance = {one.rank: one.instance_id for one in ranks}
    found = divergences(rank_of(one, compiled.get(one.pk, ())) for one in ranks)
    return [
        Fact(
            "ranks_diverged", arm, instance[rank], clock.minute_of(one.at), one.about, divergence_words(one),
            until=clock.minute_of(one.at) if one.kind in PASSING else None,
        )
        for one in found
        if one.certain
        for rank in one.ranks[:MOST_RANKS_NAMED]
    ]  # fmt: skip


def rank_of(one: Instance | LiveRank, compiled: Sequence[Compiled]) -> Rank:
    """A process as one rank of its job."""
    return Rank(
        rank=one.rank,
        seen_until=one.last_seen_at.timestamp(),
        compiled=tuple(compiled),
        compiling_frame=one.compiling_frame,
        compiling_for=one.compiling_for,
        eager_share=one.eager_calls / one.known_calls if one.known_calls >= ENOUGH_CALLS else None,
        stage=stage_of(one),
        limits=tuple(str(item.get("frame") or "") for item in one.latched_eager if isinstance(item, dict)),
    )


def stage_of(one: Instance | LiveRank) -> str:
    """The part of the model that a rank declares to run; empty where it declares none."""
    return str(one.components.get(STAGE, "")) if isinstance(one.components, dict) else ""


def ranks_compilations(*, project_id: int, ranks: Sequence[R]) -> dict[int, tuple[Compiled, ...]]:
    """What each compiled, by Instance.id; read again only where there is more than at the last look of this process."""
    key, mark = tuple(one.pk for one in ranks), compiled_mark(project_id=project_id, instances=ranks)
    with _guard:
        held = _known.pop(key, None)
    if held is None or held[0] != mark:
        found: dict[int, list[Compiled]] = {}
        for row in compiled_rows(project_id=project_id, instances=ranks) if mark[0] else ():
            found.setdefault(row.instance, []).append(_compiled(row))
        held = mark, {pk: tuple(events) for pk, events in found.items()}
    with _guard:
        _known[key] = held
        while len(_known) > KEPT:
            _known.popitem(last=False)
    return held[1]


def _compiled(row: CompiledRow) -> Compiled:
    place = f"{row.file}:{row.line}" if row.file else ""
    return Compiled(row.at.timestamp(), row.frame, place, row.kind, row.outcome, row.key, row.cache)
