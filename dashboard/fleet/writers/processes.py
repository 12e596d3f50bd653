"""Process writer: adds process counts in SQL.

Process counts have no sketch, so no row is read first.

Invariant: an instance and its covered seconds count from its first call or compilation, in any
order of reports. A late report may move that minute back. Stored minutes after the new minute are
then added to the totals of the version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from typing import Any

from django.db.models import IntegerField

from dashboard.fleet.fold.counters import COUNTER_MAX, LARGEST_FIELDS, SUMMED_FIELDS, ProcessCounts
from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.keys import GroupKey, Source, to_group_key, to_instance_key
from dashboard.fleet.models import ProcessMinute, VersionProcessHour, VersionProcessMinute
from dashboard.fleet.writers.bulk_upsert import Row, Table, rows_upsert
from dashboard.fleet.writers.dimension_ids import DimensionIds

COLUMNS = (*SUMMED_FIELDS, *LARGEST_FIELDS)
_columns_of = attrgetter(*COLUMNS)

_INSTANCE = ("project_id", "day", "instance_id", "minute")
_MINUTE = ("project_id", "day", "version_id", "environment", "gpu_type", "minute")
_HOUR = ("project_id", "day", "version_id", "environment", "gpu_type", "hour")
COUNTERS = tuple(
    name
    for name in SUMMED_FIELDS
    if isinstance(VersionProcessHour._meta.get_field(name), IntegerField)
)
_added, _largest = frozenset(SUMMED_FIELDS), frozenset(LARGEST_FIELDS)

PROCESS_MINUTES = Table(ProcessMinute, _INSTANCE, (*_INSTANCE, *COLUMNS), _added, _largest)
VERSION_MINUTES = Table(
    VersionProcessMinute,
    _MINUTE,
    (*_MINUTE, *COLUMNS, "instances"),
    _added | {"instances"},
    _largest,
)
VERSION_HOURS = Table(
    VersionProcessHour, _HOUR, (*_HOUR, *COLUMNS, "instances"), _added, _largest | {"instances"}
)

Group = tuple[GroupKey, int]


def processes_store(facts: Facts, ids: DimensionIds) -> list[tuple[int, str]]:
    """Add the facts' process counts to the stored minutes and hours of instances and versions.

    Return the project and name of each saturated counter of an hour.
    """
    minutes: dict[Group, ProcessCounts] = {}
    instances: dict[Group, int] = {}
    for group, covered in _find_newly_active(facts, ids):
        _add(minutes, group, ProcessCounts(covered=covered))
        instances[group] = instances.get(group, 0) + 1
    new = _instances_store(facts, ids)
    for (source, minute), process in facts.process_minutes.items():
        group, since = (to_group_key(source), minute), ids.active[to_instance_key(source)]
        counts = since is not None and minute >= since
        _add(minutes, group, process if counts else replace(process, covered=0.0))
        instances[group] = instances.get(group, 0) + (counts and (source, minute) in new)
    hours: dict[Group, ProcessCounts] = {}
    for (key, minute), process in minutes.items():
        _add(hours, (key, minute // 60), process)
    most = _version_minutes_store(ids, minutes, instances)
    for (source, hour), process in facts.process_hours.items():
        _add(hours, (to_group_key(source), hour), process)
    rows = [
        (
            *_key(ids, key, hour // 24),
            hour,
            *_columns_of(process),
            most.get((key, hour), int(process.covered > 0)),
        )
        for (key, hour), process in hours.items()
    ]
    written = rows_upsert(VERSION_HOURS, rows, returning=("project_id", *COUNTERS))
    return [
        (project, name)
        for project, *counts in written
        for name, count in zip(COUNTERS, counts, strict=True)
        if count >= COUNTER_MAX
    ]


def _find_newly_active(facts: Facts, ids: DimensionIds) -> Iterator[tuple[Group, float]]:
    """Yield stored minutes of instances that count only since this fold, with their covered
    seconds."""
    woken = {
        ids.instances[key]: (to_group_key(facts.instances[key].source), *span)
        for key, span in ids.woken.items()
    }
    if not woken:
        return
    first = min(since for _, since, _ in woken.values())
    rows = ProcessMinute.objects.filter(
        project_id__in={key.project for key in ids.woken},
        day__gte=first // 1440,
        instance_id__in=woken,
        minute__gte=first,
        covered__gt=0,
    )
    for instance, minute, covered in rows.values_list("instance_id", "minute", "covered"):
        group, since, until = woken[instance]
        if since <= minute and (until is None or minute < until):
            yield (group, minute), covered


def _instances_store(facts: Facts, ids: DimensionIds) -> set[tuple[Source, int]]:
    """Write the minutes of instances; return the minutes that covered no time before.

    These minutes increase the instance count of their version.
    """
    rows: dict[Row, ProcessCounts] = {}
    owner: dict[Row, tuple[Source, int]] = {}
    for (source, minute), process in facts.process_minutes.items():
        key = (
            source.version.project,
            minute // 1440,
            ids.instances[to_instance_key(source)],
            minute,
        )
        _add(rows, key, process)
        owner[key] = (source, minute)
    written = rows_upsert(
        PROCESS_MINUTES,
        [(*key, *_columns_of(p)) for key, p in rows.items()],
        returning=(*_INSTANCE, "covered"),
    )
    # If a row covers exactly the added seconds, it covered none before.
    return {
        owner[tuple(key)] for *key, covered in written if covered == rows[tuple(key)].covered > 0
    }


def _version_minutes_store(
    ids: DimensionIds, minutes: dict[Group, ProcessCounts], instances: dict[Group, int]
) -> dict[Group, int]:
    """Write the minutes of versions; return the largest instance count of the written minutes per
    hour."""
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


def _key(ids: DimensionIds, key: GroupKey, day: int) -> tuple[int, int, int, str, str]:
    return key.version.project, day, ids.versions[key.version], key.environment, key.gpu


def _add(table: dict[Any, ProcessCounts], key: Any, process: ProcessCounts) -> None:
    if key in table:
        table[key].add(process)
    else:
        table[key] = process.copy()
