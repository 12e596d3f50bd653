"""Calls to rows: minutes of instances, and minutes and hours of versions, each merged with what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import Model

from dashboard.fleet.fold.call_columns import COLUMNS, STORED, CallColumns, calls_columns, columns_joined, rows_columns
from dashboard.fleet.fold.counters import Calls
from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.keys import instance_of, series_of
from dashboard.fleet.models import RegionMinute, VersionHour, VersionMinute
from dashboard.fleet.writers.bulk_upsert import Row, Table, rows_read, rows_upsert
from dashboard.fleet.writers.dimension_ids import Ids

CHUNK = 100
"""Rows that are added up at once: columns that leave the processor's cache cost ten times more."""


def _table(model: type[Model], *key: str) -> Table:
    return Table(model, key, (*key, *COLUMNS))


REGION_MINUTES = _table(RegionMinute, "project_id", "day", "instance_id", "series_id", "minute")
VERSION_MINUTES = _table(VersionMinute, "project_id", "day", "series_id", "minute")
VERSION_HOURS = _table(VersionHour, "project_id", "day", "series_id", "hour")

Saturated = tuple[int, str]
"""A project, and what a counter of it counts that reached its largest value."""

Keyed = tuple[list[Row], CallColumns]
"""Keys that differ from each other, and what there is to add to the row of each."""


def calls_store(facts: Facts, ids: Ids) -> list[Saturated]:
    """Adds the facts' calls to the minutes and hours that are stored; returns the hours that saturated, which hold every minute."""
    places, owners, series = [], [], []
    for source, place, minute in facts.minutes:
        project, number = source.version.project, ids.series[series_of(source, place)]
        places.append((project, minute // 1440, ids.instances[instance_of(source)], number, minute))
        owners.append((project, minute // 1440, number, minute))
    for source, place, hour in facts.hours:
        series.append((source.version.project, hour // 24, ids.series[series_of(source, place)], hour))
    regions = _read(facts.minutes.values())
    minutes = _by_key(owners, regions)
    long = _read(facts.hours.values())
    of_minutes = [(project, day, number, minute // 60) for project, day, number, minute in minutes[0]]
    hours = _by_key([*of_minutes, *series], columns_joined(minutes[1], long))
    _add(REGION_MINUTES, (places, regions))
    _add(VERSION_MINUTES, minutes)
    full = {key[2] for key in _add(VERSION_HOURS, hours)}
    return [(key.version.project, f"calls of {key.region}") for key, id in ids.series.items() if id in full] if full else []


def _read(calls: Iterable[Calls]) -> CallColumns:
    found = list(calls)
    parts = [calls_columns(found[start : start + CHUNK]) for start in range(0, len(found), CHUNK)]
    return columns_joined(*parts) if parts else calls_columns([])


def _by_key(keys: Sequence[Row], columns: CallColumns) -> Keyed:
    """What belongs to the same key, added up."""
    different = sorted(set(keys))
    order = {key: place for place, key in enumerate(different)}
    parts, owners = [calls_columns([])], list[int]()
    for start in range(0, len(keys), CHUNK):
        wanted = [order[key] for key in keys[start : start + CHUNK]]
        mine = sorted(set(wanted))
        local = {place: number for number, place in enumerate(mine)}
        parts.append(columns.part(start, start + len(wanted)).merged([local[place] for place in wanted], len(mine)))
        owners.extend(mine)
    return different, columns_joined(*parts).merged(owners, len(different))


def _add(table: Table, keyed: Keyed) -> list[Row]:
    """Reads what is stored, adds it, writes the whole; returns the keys of rows that saturated.

    No other process writes these rows at the same time: a version has one folder at a time."""
    keys, columns = keyed
    width = len(table.key)
    stored = {row[:width]: row[width : width + len(STORED)] for row in rows_read(table, keys)}
    found, full = list[Row](), list[Row]()
    for start in range(0, len(keys), CHUNK):
        mine = keys[start : start + CHUNK]
        known = [place for place, key in enumerate(mine) if key in stored]
        both = columns_joined(columns.part(start, start + len(mine)), rows_columns([stored[mine[place]] for place in known]))
        merged = both.merged([*range(len(mine)), *known], len(mine))
        full.extend(mine[place] for place in merged.saturated())
        found.extend(key + row for key, row in zip(mine, merged.rows(), strict=True))
    rows_upsert(table, found)
    return full
