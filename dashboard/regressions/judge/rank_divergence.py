"""Rank divergence: compares the compilations of one job's ranks: extra or missing compilations,
other graphs, eager fallback, and ranks that still compile."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["more", "fewer", "eager", "limit", "straggler", "cache", "graph"]

CLOCK_SLACK_S = 2.0
"""Seconds by which the clocks of two hosts may differ."""
BEHIND_AFTER_S = 60.0
"""Seconds after which a rank without the others' compilation no longer counts as behind. The limit
is earlier if the rank went on to another frame."""
SILENT_AFTER_S = 180.0
"""A rank that is silent for this much longer than the others is no longer compared, because it
would hide the others' behaviour."""
COUNTED_KINDS = ("first", "recompile", "empty")
"""Kinds that are counted. A rank that traces a frame alone waits alone, even if the frame has no
graph. Backward passes compile on first use; autotuning and CUDA graph recordings compile no frame.
"""
EAGER_SHARE, COMPILED_EAGER_SHARE = 0.5, 0.02


@dataclass(frozen=True, slots=True)
class RankCompilation:
    """One compilation of a rank; `at` is its end in Unix seconds."""

    at: float
    frame: str
    place: str
    kind: str
    outcome: str
    key: str
    cache: str


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank, as far as its reports reach. `stage` is the stage that the rank declares, such as a
    pipeline stage. Stages may differ from each other."""

    rank: int
    seen_until: float
    compiled: tuple[RankCompilation, ...] = ()
    compiling_frame: str = ""
    compiling_for: float = 0.0
    eager_share: float | None = None
    stage: str = ""
    limits: tuple[str, ...] = ()
    """Frames in permanent eager fallback."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A difference between some ranks of a stage and the others. `certain` means that a collective
    may wait without end; otherwise the rank is only slower or needs a check."""

    kind: Kind
    ranks: tuple[int, ...]
    others: int
    about: str
    at: float
    certain: bool
    count: int = 0
    usual: int = 0
    stage: str = ""
    graphs: tuple[str, ...] = ()
    """The graphs that the ranks requested from the caches, by key."""
    usual_graph: str = ""


FrameKey = tuple[str, str]
"""File and line, and the name of a frame."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A rank with its compilations of each frame, oldest first."""

    rank: Rank
    frames: dict[FrameKey, list[RankCompilation]]

    def until(self, place: FrameKey, horizon: float) -> int:
        return sum(one.at <= horizon for one in self.frames.get(place, ()))

    def is_on_its_way(self, place: FrameKey, own: int) -> bool:
        """True if the rank compiles the frame now, or has since done so."""
        return (self.rank.compiling_for > 0 and self.rank.compiling_frame == place[1]) or len(
            self.frames.get(place, ())
        ) > own

    def has_moved_on(self, frame: str, since: float) -> bool:
        """True if the rank compiles, or has since compiled, another frame."""
        if self.rank.compiling_for > 0 and self.rank.compiling_frame != frame:
            return True
        return any(
            there[-1].at > since for place, there in self.frames.items() if place[1] != frame
        )


def find_divergences(ranks: Iterable[Rank]) -> list[Divergence]:
    """All differences within the stages: certain ones first, then the newest."""
    known = list(ranks)
    newest = max((rank.seen_until for rank in known), default=0.0)
    stages: dict[str, list[_Member]] = defaultdict(list)
    for rank in sorted(known, key=lambda one: one.rank):
        if rank.seen_until >= newest - SILENT_AFTER_S:
            stages[rank.stage].append(_Member(rank, _by_frame(rank)))
    found = [
        one
        for stage, members in stages.items()
        if len(members) > 1
        for one in _compare_stage(stage, members)
    ]
    return sorted(found, key=lambda one: (not one.certain, -one.at, one.kind, one.about, one.ranks))


def _by_frame(rank: Rank) -> dict[FrameKey, list[RankCompilation]]:
    found: dict[FrameKey, list[RankCompilation]] = {}
    for one in sorted(rank.compiled, key=lambda one: one.at):
        if one.kind in COUNTED_KINDS:
            found.setdefault((one.place, one.frame), []).append(one)
    return found


def _compare_stage(stage: str, members: Sequence[_Member]) -> Iterable[Divergence]:
    # Only compilations that every rank has reported can be compared. A report in transit is not a
    # difference.
    horizon = min(member.rank.seen_until for member in members) - CLOCK_SLACK_S
    for place in sorted({place for member in members for place in member.frames}):
        yield from _counts(stage, members, place, horizon)
        yield from _compare_cache_lookups(stage, members, place)
    yield from _eager(stage, members)
    yield from _limits(stage, members, horizon)


def _format_frame(place: FrameKey) -> str:
    return f"{place[1]} ({place[0]})" if place[0] else place[1]


def _counts(
    stage: str, members: Sequence[_Member], place: FrameKey, horizon: float
) -> Iterable[Divergence]:
    """Ranks that compiled a frame more or less often than most. A rank that is about to do so is
    behind, not different."""
    counts = {member.rank.rank: member.until(place, horizon) for member in members}
    if max(counts.values()) == min(counts.values()):
        return
    usual = _find_usual_count(counts, members, place)
    times = {
        member.rank.rank: [one.at for one in member.frames.get(place, ()) if one.at <= horizon]
        for member in members
    }
    newest = max(at for own in times.values() for at in own)
    since = min(_list_reach_times(times, usual), default=newest) if usual else newest
    groups: dict[tuple[Kind, int], list[int]] = defaultdict(list)
    for member in members:
        own = counts[member.rank.rank]
        if own < usual:
            behind = _is_behind(member, place, own, since, horizon)
            groups["straggler" if behind else "fewer", own].append(member.rank.rank)
        elif own > usual:
            groups["more", own].append(member.rank.rank)
    for (kind, own), ranks in groups.items():
        yield Divergence(
            kind,
            tuple(ranks),
            len(members) - len(ranks),
            _format_frame(place),
            newest,
            kind != "straggler",
            own,
            usual,
            stage,
        )


def _find_usual_count(
    counts: Mapping[int, int], members: Sequence[_Member], place: FrameKey
) -> int:
    """The count of compilations that most ranks have or are about to have."""
    # A rank that compiles now will soon have finished: one of several ranks that recompile together
    # is first.
    usual = _find_most_common(
        [
            counts[member.rank.rank] + member.is_on_its_way(place, counts[member.rank.rank])
            for member in members
        ]
    )
    # The rank that starts first is not different. The others are behind until they go on without
    # the frame.
    return 1 if usual == 0 and max(counts.values()) == 1 else usual


def _list_reach_times(times: Mapping[int, Sequence[float]], usual: int) -> list[float]:
    """Times at which each of the other ranks reached the usual count."""
    return [own[usual - 1] for own in times.values() if len(own) >= usual]


def _is_behind(member: _Member, place: FrameKey, own: int, since: float, horizon: float) -> bool:
    """True if a rank with fewer compilations of a frame is about to catch up: it compiles the
    frame, did so since, or has not gone on yet."""
    if member.is_on_its_way(place, own):
        return True
    return (
        own == 0 and horizon - since < BEHIND_AFTER_S and not member.has_moved_on(place[1], since)
    )


def _compare_cache_lookups(
    stage: str, members: Sequence[_Member], place: FrameKey
) -> Iterable[Divergence]:
    """The first compilation of a frame: served by the caches on some ranks only, or of another
    graph than on most."""
    first = {
        member.rank.rank: member.frames[place][0] for member in members if place in member.frames
    }
    missed = tuple(rank for rank, one in first.items() if one.cache == "miss")
    newest = max(one.at for one in first.values())
    if missed and len(missed) < len(first) and any(one.cache == "hit" for one in first.values()):
        yield Divergence(
            "cache",
            missed,
            len(first) - len(missed),
            _format_frame(place),
            newest,
            False,
            stage=stage,
        )
    keys = Counter(one.key for one in first.values() if one.key)
    if len(keys) > 1 and keys.most_common(1)[0][1] > 1:
        usual, count = keys.most_common(1)[0]
        other = tuple(rank for rank, one in first.items() if one.key and one.key != usual)
        # A key may contain the device number. It is evidence only if most ranks share one key.
        asked = tuple(sorted({first[rank].key for rank in other}))
        certain = count > keys.total() / 2
        yield Divergence(
            "graph",
            other,
            count,
            _format_frame(place),
            newest,
            certain,
            stage=stage,
            graphs=asked,
            usual_graph=usual,
        )


def _eager(stage: str, members: Sequence[_Member]) -> Iterable[Divergence]:
    known = [member.rank for member in members if member.rank.eager_share is not None]
    eager = tuple(rank.rank for rank in known if (rank.eager_share or 0.0) > EAGER_SHARE)
    compiled = sum((rank.eager_share or 0.0) <= COMPILED_EAGER_SHARE for rank in known)
    if eager and compiled:
        yield Divergence(
            "eager", eager, compiled, "", max(rank.seen_until for rank in known), True, stage=stage
        )


def _limits(stage: str, members: Sequence[_Member], horizon: float) -> Iterable[Divergence]:
    """A frame in permanent eager fallback on some ranks only."""
    for frame in sorted({frame for member in members for frame in member.rank.limits}):
        ranks = tuple(member.rank.rank for member in members if frame in member.rank.limits)
        if len(ranks) < len(members):
            yield Divergence(
                "limit", ranks, len(members) - len(ranks), frame, horizon, True, stage=stage
            )


def _find_most_common(counts: Iterable[int]) -> int:
    """The most common count. Of two equally common counts, the lower one: the ranks with the higher
    count did something extra."""
    return min(Counter(counts).items(), key=lambda item: (-item[1], item[0]))[0]
