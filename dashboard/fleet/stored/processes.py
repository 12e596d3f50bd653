"""Process facts to rows. They hold no sketch, so the database itself adds: no row is read first."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from dashboard.fleet.fold.counts import ADDED, LARGEST, Process
from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.keys import GroupKey, Source, group_of, instance_of
from dashboard.fleet.models import ProcessMinute, VersionProcessHour, VersionProcessMinute
from dashboard.fleet.stored.bulk import Row, Table, rows_upsert
from dashboard.fleet.stored.dimensions import Ids

COLUMNS = (*ADDED, *LARGEST)
_columns_of = attrgetter(*COLUMNS)

_INSTANCE = ("project_id", "day", "instance_id", "minute")
_MINUTE = ("project_id", "day", "version_id", "environment", "gpu_type", "minute")
_HOUR = ("project_id", "day", "version_id", "environment", "gpu_type", "hour")
_added, _largest = frozenset(ADDED), frozenset(LARGEST)

PROCESS_MINUTES = Table(ProcessMinute, _INSTANCE, (*_INSTANCE, *COLUMNS), _added, _largest)
VERSION_MINUTES = Table(VersionProcessMinute, _MINUTE, (*_MINUTE, *COLUMNS, "instances"), _added | {"instances"}, _largest)
VERSION_HOURS = Table(VersionProcessHour, _HOUR, (*_HOUR, *COLUMNS, "instances"), _added, _largest | {"instances"})

Group = tuple[GroupKey, int]


def processes_store(facts: Facts, ids: Ids) -> None:
    """Adds the facts' process minutes to what is stored, for instances and for versions."""
    new = _instances_store(facts, ids)
    minutes: dict[Group, Process] = {}
    instances: dict[Group, int] = {}
    for (source, minute), process in facts.process_minutes.items():
        group = (group_of(source), minute)
        _add(minutes, group, process)
        instances[group] = instances.get(group, 0) + ((source, minute) in new)
    hours: dict[Group, Process] = {}
    for (key, minute), process in minutes.items():
        _add(hours, (key, minute // 60), process)
    most = _version_minutes_store(ids, minutes, instances)
    for (source, hour), process in facts.process_hours.items():
        _add(hours, (group_of(source), hour), process)
    rows = [(*_key(ids, key, hour // 24), hour, *_columns_of(process), most.get((key, hour), 1)) for (key, hour), process in hours.items()]
    rows_upsert(VERSION_HOURS, rows)


def _instances_store(facts: Facts, ids: Ids) -> set[tuple[Source, int]]:
    """Writes the minutes of instances; returns those that had no row before, by which instances are counted."""
    rows: dict[Row, Process] = {}
    owner: dict[Row, tuple[Source, int]] = {}
    for (source, minute), process in facts.process_minutes.items():
        key = (source.version.project, minute // 1440, ids.instances[instance_of(source)], minute)
        _add(rows, key, process)
        owner[key] = (source, minute)
    written = rows_upsert(PROCESS_MINUTES, [(*key, *_columns_of(p)) for key, p in rows.items()], returning=(*_INSTANCE, "windows"))
    # A window adds at least one, so a row that holds no more than what was just added is a new one.
    return {owner[tuple(key)] for *key, windows in written if windows == rows[tuple(key)].windows}


def _version_minutes_store(ids: Ids, minutes: dict[Group, Process], instances: dict[Group, int]) -> dict[Group, int]:
    """Writes the minutes of versions; returns the largest number of instances in any touched minute of each hour."""
    rows = {(*_key(ids, key, minute // 1440), minute): (key, minute) for key, minute in minutes}
    written = rows_upsert(
        VERSION_MINUTES,
        [(*row, *_columns_of(minutes[group]), instances[group]) for row, group in rows.items()],
        returning=(*_MINUTE, "instances"),
    )
    most: dict[Group, int] = {}
    for *columns, count in written:
        key, minute = rows[tuple(columns)]
        most[key, minute // 60] = max(count, most.get((key, minute // 60), 0))
    return most


def _key(ids: Ids, key: GroupKey, day: int) -> tuple[int, int, int, str, str]:
    return key.version.project, day, ids.versions[key.version], key.environment, key.gpu


def _add(table: dict[Any, Process], key: Any, process: Process) -> None:
    if key in table:
        table[key].add(process)
    else:
        table[key] = process.copy()
