"""The counts in the tables of a dashboard, read only with SQL, as a tally to compare with the tally
of the senders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.faults.tally import CALLS, EAGER, SKETCHES, Arrival, Cell, Counts, Tally

Rows = Callable[[str], list[tuple[Any, ...]]]
COUNTERS = (*CALLS, *(f"eager_{cause}" for cause in EAGER))
COUNTED_SKETCHES = {"latency_count": "latency", "gpu_count": "gpu", "stalled_count": "stalled"}
"""Columns with the number of values in a sketch of the same row."""
PROCESS = (
    "windows",
    "compiles",
    "recompiles",
    "compile_failures",
    "request_compiles",
    "recordings",
)
HEAD_BYTES = 25
"""Bytes of a packed sketch before its numbers: a scale of one byte, and three floats."""

ARRIVAL = (
    "CREATE TABLE arrival (instance_id varchar(26), seq_first bigint, seq_last bigint, "
    "clock_offset double precision)"
)
NOTE_IT = (
    "INSERT INTO arrival VALUES (NEW.instance_id, NEW.seq_first, NEW.seq_last, NEW.clock_offset)"
)
ARRIVALS_NOTED = {
    "sqlite": (
        ARRIVAL,
        f"CREATE TRIGGER arrival_noted AFTER INSERT ON ingest_inbox BEGIN {NOTE_IT}; END",
    ),
    "postgresql": (
        ARRIVAL,
        "CREATE FUNCTION arrival_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"{NOTE_IT}; RETURN NEW; END $$",
        "CREATE TRIGGER arrival_noted AFTER INSERT ON ingest_inbox FOR EACH ROW EXECUTE "
        "FUNCTION arrival_note()",
    ),
}
"""Statements that make the database record each stored report in the same commit, before a fold
deletes the report."""


def arrivals_read(rows: Rows, instances: Iterable[str]) -> list[Arrival]:
    """The stored reports of these instances; a report that was stored twice occurs twice."""
    wanted = ", ".join(f"'{instance}'" for instance in instances)
    return [Arrival(*row) for row in rows(f"SELECT * FROM arrival WHERE instance_id IN ({wanted})")]


def tables_read(rows: Rows, database: str, versions: Iterable[str]) -> Tally:
    """The contents of the tables for these versions and their instances."""
    tally: Tally = {}
    named = ", ".join(f"'{version}'" for version in versions)
    for cell, counts in (
        *_calls(rows, named),
        *_processes(rows, named),
        *_events(rows, database, named),
    ):
        tally.setdefault(cell, Counter()).update(counts)
    return tally


def sketch_read(name: str, packed: bytes | memoryview | None) -> Counts:
    """Number of values in a stored sketch, in total and by bin, according to the documented byte
    format."""
    counts: Counts = Counter()
    if packed is None:
        return counts
    zero, offset, *numbers = _varints(bytes(packed)[HEAD_BYTES:])
    place = offset // 2 if offset % 2 == 0 else -(offset // 2) - 1
    counts[f"{name} zero"] = zero
    pending = iter(numbers)
    for number in pending:
        if number:
            counts[f"{name} bin {place}"] = number
        place += 1 if number else next(pending)
    counts[name] = sum(counts.values())
    return counts


def _varints(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield number
            number = shift = 0


def _calls(rows: Rows, named: str) -> Iterator[tuple[Cell, Counts]]:
    columns = (*COUNTERS, *SKETCHES, *COUNTED_SKETCHES)
    for table, who, when in (
        ("region_minute", "instance.instance_id", "minute"),
        ("version_minute", "model_version.name", "minute"),
        ("version_hour", "model_version.name", "hour"),
    ):
        for owner, region, bucket, at, *values in rows(
            f"SELECT {who}, region, bucket, {table}.{when}, "
            f"{', '.join(f'{table}.{name}' for name in columns)} FROM {table}"
            f" JOIN series ON series.id = {table}.series_id JOIN model_version ON "
            "model_version.id = series.version_id"
            f" {f'JOIN instance ON instance.id = {table}.instance_id' if table == 'region_minute' else ''}"
            f" WHERE model_version.name IN ({named})"
        ):
            found = dict(zip(columns, values, strict=True))
            counts: Counts = Counter({name: found[name] for name in COUNTERS})
            for name in SKETCHES:
                counts.update(sketch_read(name, found[name]))
            for column, name in COUNTED_SKETCHES.items():
                counts[column] = abs(
                    counts[name] - (found[column] or 0)
                )  # equal, so the difference is empty
            yield Cell(table, owner, f"{region}|{bucket}", at), counts


def _processes(rows: Rows, named: str) -> Iterator[tuple[Cell, Counts]]:
    for table, who, when in (
        ("process_minute", "instance.instance_id", "minute"),
        ("version_process_minute", "model_version.name", "minute"),
        ("version_process_hour", "model_version.name", "hour"),
    ):
        instance = (
            f"JOIN instance ON instance.id = {table}.instance_id"
            if table == "process_minute"
            else ""
        )
        owner = "instance" if table == "process_minute" else table
        for name, at, *values in rows(
            f"SELECT {who}, {table}.{when}, "
            f"{', '.join(f'{table}.{name}' for name in PROCESS)} FROM {table} {instance}"
            f" JOIN model_version ON model_version.id = {owner}.version_id WHERE "
            f"model_version.name IN ({named})"
        ):
            yield Cell(table, name, "", at), Counter(dict(zip(PROCESS, values, strict=True)))


def _events(rows: Rows, database: str, named: str) -> Iterator[tuple[Cell, Counts]]:
    seconds = (
        "CAST(strftime('%s', at) AS INTEGER)"
        if database == "sqlite"
        else "CAST(floor(extract(epoch FROM at)) AS bigint)"
    )
    for instance, name, minute in rows(
        f"SELECT instance.instance_id, compile_id, {seconds} / 60 FROM compile_event"
        f" JOIN instance ON instance.id = compile_event.instance_id"
        " JOIN model_version ON model_version.id = compile_event.version_id WHERE "
        f"model_version.name IN ({named})"
    ):
        yield Cell("compile_event", instance, name, minute), Counter(events=1)
