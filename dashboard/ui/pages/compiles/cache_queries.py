"""Compile caches for the Model page: lookups, causes of misses, and comparisons for agents that
know no cause."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN

from dashboard.common import clock
from dashboard.fleet.selectors.compilations.cache_answers import (
    MOST_STARTS,
    StartMisses,
    UnexplainedMiss,
    VersionCacheAnswers,
    list_unexplained_misses,
    read_cache_answers,
)
from dashboard.fleet.selectors.compilations.cache_miss_causes import (
    MissExplanation,
    find_miss_causes,
)
from dashboard.fleet.selectors.instances.instances import InstanceData
from dashboard.fleet.selectors.versions.version_series import Span


@dataclass
class CacheData:
    """The first two cover the range; the starts are those of the instances on the page."""

    answered: list[VersionCacheAnswers] = field(default_factory=list)
    unexplained: list[UnexplainedMiss] = field(default_factory=list)
    starts: dict[int, list[StartMisses]] = field(default_factory=dict)
    compared: dict[int, MissExplanation] = field(default_factory=dict)
    """By instance, for instances whose agent knows no earlier run."""


def read_cache_data(
    *,
    project_id: int,
    model_id: int,
    version_ids: Collection[int],
    environment: str,
    span: Span,
    instances: Iterable[InstanceData],
) -> CacheData:
    """One query, and six more if a comparison is required."""
    wanted: dict[str, Any] = {
        "project_id": project_id,
        "version_ids": version_ids,
        "environment": environment,
        "first": span.first,
        "last": span.last + 1,
    }
    newest = sorted(
        (one for one in instances if one.start is not None), key=lambda one: -one.started_minute
    )[:MOST_STARTS]
    since = clock.at_minute(int(newest[-1].started_minute)) if newest else None
    answered, starts = read_cache_answers(
        within=wanted, project_id=project_id, started=[one.id for one in newest], since=since
    )
    unexplained = (
        list_unexplained_misses(wanted)
        if any(one.miss == NO_EARLIER_RUN for one in answered)
        else []
    )
    unknown = {one.instance_id for one in unexplained}
    unknown |= {
        id for id, causes in starts.items() if any(one.cause == NO_EARLIER_RUN for one in causes)
    }
    return CacheData(
        answered,
        unexplained,
        starts,
        find_miss_causes(project_id=project_id, model_id=model_id, instance_ids=unknown),
    )
