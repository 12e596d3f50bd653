"""Call writer: adds calls to the stored minutes of instances, and minutes and hours of versions.

Sketches cannot be added in SQL, so stored rows are read, merged and written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import Model

from dashboard.fleet.fold.call_columns import (
    COLUMNS,
    STORED_COLUMNS,
    CallColumns,
    build_call_columns,
    concatenate_columns,
    parse_stored_rows,
)
from dashboard.fleet.fold.counters import CallCounts
from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.keys import to_instance_key, to_series_key
from dashboard.fleet.models import RegionMinute, VersionHour, VersionMinute
from dashboard.fleet.writers.bulk_upsert import Row, Table, rows_read, rows_upsert
from dashboard.fleet.writers.dimension_ids import DimensionIds

CHUNK_ROWS = 100
"""Number of rows per merge; arrays larger than the CPU cache cost ten times more."""


def _make_table(model: type[Model], *key: str) -> Table:
    return Table(model, key, (*key, *COLUMNS))


REGION_MINUTES = _make_table(
    RegionMinute, "project_id", "day", "instance_id", "series_id", "minute"
)
VERSION_MINUTES = _make_table(VersionMinute, "project_id", "day", "series_id", "minute")
VERSION_HOURS = _make_table(VersionHour, "project_id", "day", "series_id", "hour")

SaturatedCounter = tuple[int, str]
"""Project, and the description of a saturated counter."""

KeyedColumns = tuple[list[Row], CallColumns]
"""Distinct keys, and the columns to add to the row of each key."""


def calls_store(facts: Facts, ids: DimensionIds) -> list[SaturatedCounter]:
    """Add the facts' calls to the stored minutes and hours.

    Return the saturated counters of hours; an hour includes all its minutes.
    """
    places, owners, series = [], [], []
    for source, place, minute in facts.minutes:
        project, number = source.version.project, ids.series[to_series_key(source, place)]
        places.append(
            (project, minute // 1440, ids.instances[to_instance_key(source)], number, minute)
        )
        owners.append((project, minute // 1440, number, minute))
    for source, place, hour in facts.hours:
        series.append(
            (source.version.project, hour // 24, ids.series[to_series_key(source, place)], hour)
        )
    regions = _build_columns(facts.minutes.values())
    minutes = _merge_by_key(owners, regions)
    long = _build_columns(facts.hours.values())
    of_minutes = [
        (project, day, number, minute // 60) for project, day, number, minute in minutes[0]
    ]
    hours = _merge_by_key([*of_minutes, *series], concatenate_columns(minutes[1], long))
    _add_to_stored(REGION_MINUTES, (places, regions))
    _add_to_stored(VERSION_MINUTES, minutes)
    full = {key[2] for key in _add_to_stored(VERSION_HOURS, hours)}
    return (
        [
            (key.version.project, f"calls of {key.region}")
            for key, id in ids.series.items()
            if id in full
        ]
        if full
        else []
    )


def _build_columns(calls: Iterable[CallCounts]) -> CallColumns:
    found = list(calls)
    parts = [
        build_call_columns(found[start : start + CHUNK_ROWS])
        for start in range(0, len(found), CHUNK_ROWS)
    ]
    return concatenate_columns(*parts) if parts else build_call_columns([])


def _merge_by_key(keys: Sequence[Row], columns: CallColumns) -> KeyedColumns:
    """Add the columns of equal keys."""
    different = sorted(set(keys))
    order = {key: place for place, key in enumerate(different)}
    parts, owners = [build_call_columns([])], list[int]()
    for start in range(0, len(keys), CHUNK_ROWS):
        wanted = [order[key] for key in keys[start : start + CHUNK_ROWS]]
        mine = sorted(set(wanted))
        local = {place: number for number, place in enumerate(mine)}
        parts.append(
            columns.part(start, start + len(wanted)).merged(
                [local[place] for place in wanted], len(mine)
            )
        )
        owners.extend(mine)
    return different, concatenate_columns(*parts).merged(owners, len(different))


def _add_to_stored(table: Table, keyed: KeyedColumns) -> list[Row]:
    """Read the stored rows, add the columns, and write the sums; return the keys of saturated rows.

    No other process writes these rows concurrently: the shard locks allow one worker per version.
    """
    keys, columns = keyed
    width = len(table.key)
    stored = {
        row[:width]: row[width : width + len(STORED_COLUMNS)] for row in rows_read(table, keys)
    }
    found, full = list[Row](), list[Row]()
    for start in range(0, len(keys), CHUNK_ROWS):
        mine = keys[start : start + CHUNK_ROWS]
        known = [place for place, key in enumerate(mine) if key in stored]
        both = concatenate_columns(
            columns.part(start, start + len(mine)),
            parse_stored_rows([stored[mine[place]] for place in known]),
        )
        merged = both.merged([*range(len(mine)), *known], len(mine))
        full.extend(mine[place] for place in merged.saturated())
        found.extend(key + row for key, row in zip(mine, merged.rows(), strict=True))
    rows_upsert(table, found)
    return full
