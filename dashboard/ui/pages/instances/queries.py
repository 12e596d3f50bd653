"""Data of the Instances page: instances that reported in the range, their comparison with their
version, and common traits of degraded instances."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from dashboard.common import clock
from dashboard.fleet.fold.roles import is_counted, is_helper
from dashboard.fleet.models import Instance, InstanceState, WatchedModel
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.instances.instance_heatmap import Heatmap, Slots, read_heatmap
from dashboard.fleet.selectors.instances.instance_list import list_instances_since
from dashboard.fleet.selectors.instances.instance_states import (
    SEVERITY,
    eager_share,
    has_failed,
    instance_state,
)
from dashboard.fleet.selectors.instances.instance_traits import (
    MAX_INSTANCES,
    Traits,
    read_instance_traits,
)
from dashboard.fleet.selectors.job_groups import NO_SERVER, Groups, Server
from dashboard.fleet.selectors.versions.version_series import read_outermost_series

BAD_STATES = (InstanceState.HUNG, InstanceState.SILENT, InstanceState.EAGER, InstanceState.DEGRADED)


InstanceWithState = tuple[Instance, InstanceState]


@dataclass(frozen=True)
class InstancesQuery:
    """Parameters of the URL; empty values, except the environment, match everything."""

    slots: Slots
    since: datetime
    environment: str = ""
    version_id: int | None = None
    baseline_id: int | None = None
    """The version with which p50 is compared; None: each instance with its own version."""
    gpu: str = ""
    state: str = ""
    text: str = ""
    sort: str = "state"
    descending: bool = False
    page: int = 1
    size: int = 50


@dataclass
class InstancesData:
    """One page of matching instances, and the filter values."""

    environment: str
    everyone: list[tuple[Instance, InstanceState]]
    fitting: list[tuple[Instance, InstanceState]]
    shown: list[tuple[Instance, InstanceState]]
    levels: Heatmap
    traits: dict[int, Traits] = field(default_factory=dict)
    helpers: list[Instance] = field(default_factory=list)
    """Helpers of jobs that report now."""
    bad: list[int] = field(default_factory=list)
    good: list[int] = field(default_factory=list)

    @property
    def states(self) -> Counter[InstanceState]:
        """Number of instances by state, independent of the state filter."""
        return Counter(state for _, state in self.everyone)

    @property
    def counted(self) -> int:
        """Number of instances; a process that only starts is not counted."""
        return sum(is_counted(row) for row, _ in self.everyone)

    @property
    def groups(self) -> Groups:
        """Filter values that belong together."""
        return Groups([*(row for row, _ in self.everyone), *self.helpers])


def read_instances_data(*, model: WatchedModel, asked: InstancesQuery) -> InstancesData:
    """A fixed number of queries: one for the list, two for the strips, one for the trait
    differences if some instances are degraded and some are not."""
    environment, now = asked.environment, clock.now()
    rows = list_instances_since(
        project_id=model.project_id, model_id=model.pk, environment=environment, since=asked.since
    )
    found = [(row, instance_state(row, now)) for row in rows if _matches_query(row, asked)]
    everyone = [pair for pair in found if not is_helper(pair[0])]
    helpers = [
        row
        for row, state in found
        if is_helper(row) and state not in (InstanceState.SILENT, InstanceState.ENDED)
    ]
    fitting = _sort_pairs(
        [pair for pair in everyone if not asked.state or pair[1] == asked.state], helpers, asked
    )
    first = (min(asked.page, max(1, -(-len(fitting) // asked.size))) - 1) * asked.size
    shown = fitting[first : first + asked.size]
    series = read_outermost_series(
        project_id=model.project_id,
        version_ids={
            id
            for id in (*(row.version_id for row, _ in shown), asked.baseline_id)
            if id is not None
        },
        environment=environment,
    )
    facts = InstancesData(
        environment=environment,
        everyone=everyone,
        fitting=fitting,
        shown=shown,
        helpers=helpers,
        levels=read_heatmap(
            project_id=model.project_id,
            instance_ids=[row.pk for row, _ in shown],
            series=series,
            slots=asked.slots,
            baseline_id=asked.baseline_id,
        ),
    )
    _compare(facts, model.project_id)
    return facts


def _compare(facts: InstancesData, project_id: int) -> None:
    """Degraded instances first, so that the limit on compared instances drops none of them."""
    facts.bad = [row.pk for row, state in facts.everyone if state in BAD_STATES]
    facts.good = [
        row.pk
        for row, state in facts.everyone
        if state not in BAD_STATES and is_counted(row) and not has_failed(row)
    ]
    if facts.bad and facts.good:
        few = {*facts.bad[: MAX_INSTANCES // 2], *facts.good[: MAX_INSTANCES // 2]}
        rows = [row for row, _ in facts.everyone if row.pk in few]
        since, newest = min(row.started_at for row in rows), max(row.last_minute for row in rows)
        facts.traits = read_instance_traits(
            project_id=project_id, instance_ids=few, since=since, newest=newest
        )


def _matches_query(row: Instance, asked: InstancesQuery) -> bool:
    if asked.version_id is not None and row.version_id != asked.version_id:
        return False
    if asked.gpu and row.gpu != asked.gpu:
        return False
    return (
        not asked.text
        or asked.text.lower()
        in f"{process_name(row)} {row.host} {row.node} {row.instance_id} {row.job}".lower()
    )


def _sort_pairs(
    pairs: list[InstanceWithState], helpers: list[Instance], asked: InstancesQuery
) -> list[InstanceWithState]:
    """Sorts in the requested order. Processes of one server stay together, at the position of the
    first of them."""
    groups = Groups([*(row for row, _ in pairs), *helpers])
    ranks = {row.pk: _rank(row, state, asked.sort) for row, state in pairs}
    first: dict[Server, tuple[float | str | int, ...]] = {}
    for row, _ in pairs:
        if server := groups.server_of(row):
            first[server] = (max if asked.descending else min)(
                ranks[row.pk], first.get(server, ranks[row.pk])
            )

    def place(pair: InstanceWithState) -> tuple[object, ...]:
        server = groups.server_of(pair[0])
        return (
            (first[server], server, ranks[pair[0].pk])
            if server
            else (ranks[pair[0].pk], NO_SERVER, ranks[pair[0].pk])
        )

    return sorted(pairs, key=place, reverse=asked.descending)


def _rank(row: Instance, state: InstanceState, sort: str) -> tuple[float | str | int, ...]:
    name = (row.label or row.host, row.rank, row.pid or 0, row.instance_id)
    if sort == "name":
        return name
    if sort == "eager":
        return (eager_share(row), *name)
    if sort == "seen":
        return (row.last_seen_at.timestamp(), *name)
    if sort == "started":
        return (row.started_at.timestamp(), *name)
    return (SEVERITY.index(state), *name)
