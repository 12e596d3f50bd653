"""Neighbour reader: fits other models on the nodes of a deployment to the day before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judge_inputs.execution_modes import ModeChanges
from dashboard.fleet.selectors.judge_inputs.independent_units import read_processes
from dashboard.fleet.selectors.judge_inputs.judge_minutes import read_instance_minutes
from dashboard.fleet.selectors.judge_inputs.neighbour_minutes import (
    list_neighbours,
    read_neighbour_minutes,
)
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.neighbours import NeighbourMinute, Neighbours, fit_neighbours
from dashboard.regressions.judge.past_levels import DAY_MINUTES
from dashboard.regressions.judge.settings import Settings

ByMinute = dict[int, list[NeighbourMinute]]


@dataclass(frozen=True)
class Controls:
    """The fitted neighbours of a deployment, and their processes with their nodes."""

    fitted: Neighbours = field(default_factory=Neighbours)
    processes: Mapping[int, str] = field(default_factory=dict)

    def read_minutes(self, deployment: Deployment, from_minute: int, to_minute: int) -> ByMinute:
        """The minutes of the neighbours; none, and no query, if they explain nothing."""
        if not self.fitted.slopes:
            return {}
        return read_by_minute(deployment, self.processes, from_minute, to_minute)


def fit_controls(
    *, deployment: Deployment, baseline: Deployment, changed: ModeChanges, settings: Settings
) -> Controls:
    """The neighbours of the baseline's nodes, fitted to the day before the deployment. Without
    neighbours, two queries."""
    start = deployment.started_minute
    nodes = {process.host for process in read_processes(baseline).values()}
    processes = list_neighbours(deployment=deployment, nodes=nodes)
    if not processes:
        return Controls()
    others = read_by_minute(deployment, processes, start - DAY_MINUTES, start)
    rows = read_instance_minutes(
        deployment=deployment,
        baseline=baseline,
        from_minute=start - DAY_MINUTES,
        to_minute=start,
        changed=changed,
    )
    own: dict[int, list[InstanceMinute]] = {}
    for row in cast(Iterable[InstanceMinute], rows):
        if row.arm == "baseline" and row.outermost:
            own.setdefault(row.minute, []).append(row)
    minutes = sorted(own.keys() | others.keys())
    fitted = fit_neighbours(
        ((minute, own.get(minute, []), others.get(minute, [])) for minute in minutes), settings
    )
    return Controls(fitted, processes)


def read_by_minute(
    deployment: Deployment, processes: Mapping[int, str], from_minute: int, to_minute: int
) -> ByMinute:
    """The minutes of these processes."""
    found: ByMinute = {}
    for row in read_neighbour_minutes(
        project_id=deployment.project_id,
        neighbours=processes,
        from_minute=from_minute,
        to_minute=to_minute,
    ):
        found.setdefault(row.minute, []).append(NeighbourMinute(*row))
    return found
