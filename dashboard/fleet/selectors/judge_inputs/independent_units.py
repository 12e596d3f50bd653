"""Independent units: processes that vary together count as one statistical unit.

A process runs on its node if the agent reports one, else on its host. A pod with a new name
therefore runs where earlier pods of the node ran.

1. All ranks of a job form one unit, because ranks run in lockstep. Its host is the first of its
hosts by name.
2. A process that starts after another one of its version ended, on the same host and GPU type,
joins the unit of the ended process.
3. Any other process is a unit of its own.

Restarts on one host therefore do not add independent instances. Only processes that called or
compiled are included, from the minute of the first call or compilation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.db.models.functions import Greatest

from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX
from dashboard.fleet.models import Deployment, Instance
from dashboard.fleet.selectors.instances.role_filters import where_counted

_COLUMNS = ("id", "instance_id", "job", "world_size", "since", "last_minute", "host", "node", "gpu")


class JudgedProcess(NamedTuple):
    """One process. `unit` varies independently of other units; `host` is the node of the
    unit, or its host if no node is reported."""

    instance: str
    unit: str
    host: str
    gpu: str
    world_size: int
    first_minute: int
    last_minute: int


def read_processes(side: Deployment) -> dict[int, JudgedProcess]:
    """Return the counted processes of a version in its environment by Instance.id.

    `first_minute` is the minute of the first call or compilation. Collective instances `other` are
    excluded.
    """
    rows = Instance.objects.filter(
        where_counted(), version_id=side.version_id, environment=side.environment
    )
    rows = rows.annotate(since=Greatest("active_minute", "first_minute"))
    values = (
        rows.exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX)
        .order_by("since", "instance_id")
        .values_list(*_COLUMNS)
    )
    alone = {
        id: JudgedProcess(name, name, node or host, gpu, size, first, last)
        for id, name, job, size, first, last, host, node, gpu in values
    }
    jobs: dict[str, list[int]] = {}
    for id, _, job, size, *_ in values:
        if size > 1 and job:
            jobs.setdefault(job, []).append(id)
    found = {id: process._replace(unit=unit) for id, process, unit in _assign_units(alone)}
    for job, ids in jobs.items():
        host = min(alone[id].host for id in ids)
        found |= {id: alone[id]._replace(unit=f"job {job}", host=host) for id in ids}
    return found


def _assign_units(processes: dict[int, JudgedProcess]) -> Iterable[tuple[int, JudgedProcess, str]]:
    """Yield each process with the unit of the process it follows, else with its own unit, ordered
    by start."""
    places: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for id, process in processes.items():
        if not process.host or process.world_size > 1:
            yield id, process, process.unit
            continue
        held = places.setdefault((process.host, process.gpu), [])
        free = next(
            (number for number, (last, _) in enumerate(held) if last <= process.first_minute), None
        )
        unit = process.unit if free is None else held[free][1]
        if free is None:
            held.append((process.last_minute, unit))
        else:
            held[free] = (process.last_minute, unit)
        yield id, process, unit
