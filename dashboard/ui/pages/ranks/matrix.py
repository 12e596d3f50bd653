"""Rank matrix of a job: from its processes and their compilations."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from dashboard.common import clock
from dashboard.fleet.models import CompileEvent, Instance
from dashboard.regressions.judge.rank_divergence import COUNTED_KINDS
from dashboard.ui.charts.rank_matrix import RankMatrix, RankTimeline, draw_rank_matrix

_PLACE = re.compile(r" \([^()]*\)$")


def build_rank_matrix(
    instances: Sequence[Instance],
    compiled: Mapping[int, Sequence[CompileEvent]],
    *,
    odd: Collection[int],
    since: datetime,
    frame: str = "",
) -> RankMatrix | None:
    """The matrix of a job, from the time when its ranks diverged. `frame` counts the compilations
    of one frame, such as `step (train.py:8)`; without one, or if no rank compiled it, all."""
    name = _PLACE.sub("", frame)
    counted = [one for events in compiled.values() for one in events if one.kind in COUNTED_KINDS]
    named = name if any(one.frame == name for one in counted) else ""
    ranks = [
        RankTimeline(
            rank=one.rank,
            first=clock.minute_of(one.started_at.timestamp()),
            last=clock.minute_of(one.last_seen_at.timestamp()),
            compiled=sorted(
                event.at.timestamp() / 60
                for event in compiled.get(one.pk, ())
                if event.kind in COUNTED_KINDS and (not named or event.frame == named)
            ),
        )
        for one in instances
    ]
    until = max((one.last for one in ranks), default=0)
    now = min(clock.minute_of(clock.unix()), until)
    began = clock.minute_of(since.timestamp())
    return draw_rank_matrix(ranks, odd=odd, since=began, now=max(now, began))
