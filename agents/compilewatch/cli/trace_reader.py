"""Trace reader: yields the entries of a TORCH_TRACE file in bounded memory."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

TRACE_GLOB = "dedicated_log_torch_trace*.log"
"""One file per process; torch adds the rank to the name after the process group exists."""
MAX_LINE = 1 << 20
MAX_PAYLOAD = 1 << 18
MAX_RANK = 1 << 31
MAX_NAMED_DAMAGES = 10
DAY_SECONDS = 86400.0
_HEAD = re.compile(
    r"(?:\[rank(?P<rank>\d{1,9})\]:)?[A-Z](?P<month>\d\d)(?P<day>\d\d) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)\.(?P<fraction>\d{1,6})"
    r" +(?P<pid>\d{1,12})(?: +\d+)? \S+:\d+\] (?P<json>\{.*)"
)
_DEEP = b"\t      "
"""Torch indents by two spaces; deeper lines are members of lists in an event's arguments, which
grow with the model.
"""


class Entry(NamedTuple):
    """A line of the trace with its payload."""

    number: int
    at: float
    """Unix seconds.

    The line has neither zone nor year, so this machine's zone and the year of the file's last write
    apply.
    """
    pid: int
    rank: int | None
    data: dict[str, Any]
    payload: str = ""


class TraceReader:
    """The entries of one file.

    Keeps only payloads that `wanted` accepts, without their deep lists.
    """

    def __init__(self, path: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
        self._path = path
        self._wanted = wanted
        self.damage_count = 0
        self.damages: list[str] = []
        """The first damages, in words."""

    def record_damage(self, number: int, problem: str) -> None:
        """Counts and describes a damage."""
        self.damage_count += 1
        if len(self.damages) < MAX_NAMED_DAMAGES:
            self.damages.append(f"{self._path.name} line {number}: {problem}")

    def __iter__(self) -> Iterator[Entry]:
        entry: Entry | None = None
        payload: list[bytes] = []
        size = 0
        if not self._path.is_file():  # a pipe blocks its reader, a device has no end
            self.record_damage(0, "not a regular file")
            return
        with self._path.open("rb") as file:
            written = self._path.stat().st_mtime
            for number, (line, whole) in enumerate(_lines(file), 1):
                if line.startswith(b"\t"):
                    if (
                        entry is not None
                        and not line.startswith(_DEEP)
                        and size + len(line) <= MAX_PAYLOAD
                        and self._wanted(entry.data)
                    ):
                        payload.append(line[1:])
                        size += len(line)
                    continue
                if entry is not None:
                    yield entry._replace(payload=_text(b"".join(payload)))
                payload, size = [], 0
                entry = self._entry(number, line, written) if whole else None
                if not whole:
                    self.record_damage(number, f"longer than {MAX_LINE} bytes")
        if entry is not None:
            yield entry._replace(payload=_text(b"".join(payload)))

    def _entry(self, number: int, line: bytes, written: float) -> Entry | None:
        match = _HEAD.match(_text(line))
        if match is None:
            self.record_damage(number, "not a line of a trace")
            return None
        try:
            data = json.loads(match["json"])
        except (ValueError, RecursionError):
            self.record_damage(number, "contains incomplete JSON")
            return None
        rank = data.get("rank", int(match["rank"] or "-1"))
        return Entry(
            number,
            _line_time(match, written),
            int(match["pid"]),
            rank if type(rank) is int and 0 <= rank < MAX_RANK else None,
            data,
        )


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yields each line, truncated at the limit, and whether it is complete."""
    while line := file.readline(MAX_LINE):
        whole = line.endswith(b"\n") or len(line) < MAX_LINE
        yield line, whole
        while not whole:
            remainder = file.readline(MAX_LINE)
            whole = remainder.endswith(b"\n") or len(remainder) < MAX_LINE


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _line_time(match: re.Match[str], written: float) -> float:
    """Returns the time of a line.

    The year is that of the file's last write; a date after that write belongs to the year before.
    """
    fields = [int(match[name]) for name in ("month", "day", "hour", "minute", "second")]
    year = time.localtime(written).tm_year
    try:
        moments = [
            time.mktime((candidate, *fields, 0, 0, -1))  # type: ignore[arg-type]
            for candidate in (year, year - 1)
        ]
    except (ValueError, OverflowError):
        return written
    moment = moments[0] if moments[0] <= written + DAY_SECONDS else moments[1]
    return moment + int(match["fraction"].ljust(6, "0")) / 1e6
