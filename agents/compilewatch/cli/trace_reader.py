"""Reads a file that torch wrote under TORCH_TRACE, entry by entry and in bounded memory, and names what in it is damaged."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

NAMES = "dedicated_log_torch_trace*.log"
"""One file for each process; torch puts the rank into the name of one that began after the process group."""
MAX_LINE = 1 << 20
MAX_PAYLOAD = 1 << 18
MAX_RANK = 1 << 31
MAX_NAMED = 10
DAY = 86400.0
_HEAD = re.compile(
    r"(?:\[rank(?P<rank>\d{1,9})\]:)?[A-Z](?P<month>\d\d)(?P<day>\d\d) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)\.(?P<fraction>\d{1,6})"
    r" +(?P<pid>\d{1,12})(?: +\d+)? \S+:\d+\] (?P<json>\{.*)"
)
_DEEP = b"\t      "
"""Torch indents by two: what lies so deep are the members of lists inside an event's arguments, as long as a model is."""


class Entry(NamedTuple):
    """A line of the trace with the payload that follows it."""

    number: int
    at: float
    """Unix seconds, read in this machine's zone and in the year in which the file was last written: the line has neither."""
    pid: int
    rank: int | None
    data: dict[str, Any]
    payload: str = ""


class TraceLines:
    """The entries of one file; of payloads only those that `wanted` asks for are kept, without the deep lists in them."""

    def __init__(self, path: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
        self._path = path
        self._wanted = wanted
        self.damaged = 0
        self.damages: list[str] = []
        """The first of them, named."""

    def damage(self, number: int, problem: str) -> None:
        """Counts what cannot be read."""
        self.damaged += 1
        if len(self.damages) < MAX_NAMED:
            self.damages.append(f"{self._path.name} line {number}: {problem}")

    def __iter__(self) -> Iterator[Entry]:
        entry: Entry | None = None
        kept: list[bytes] = []
        size = 0
        if not self._path.is_file():  # a pipe holds up its reader, a device has no end
            self.damage(0, "is no regular file")
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
                        kept.append(line[1:])
                        size += len(line)
                    continue
                if entry is not None:
                    yield entry._replace(payload=_text(b"".join(kept)))
                kept, size = [], 0
                entry = self._entry(number, line, written) if whole else None
                if not whole:
                    self.damage(number, f"is longer than {MAX_LINE} bytes")
        if entry is not None:
            yield entry._replace(payload=_text(b"".join(kept)))

    def _entry(self, number: int, line: bytes, written: float) -> Entry | None:
        found = _HEAD.match(_text(line))
        if found is None:
            self.damage(number, "is no line of a trace")
            return None
        try:
            data = json.loads(found["json"])
        except (ValueError, RecursionError):
            self.damage(number, "holds JSON that is not whole")
            return None
        rank = data.get("rank", int(found["rank"] or "-1"))
        return Entry(
            number,
            _moment(found, written),
            int(found["pid"]),
            rank if type(rank) is int and 0 <= rank < MAX_RANK else None,
            data,
        )


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Each line, or the beginning of one that is too long to be held, and whether it is whole."""
    while line := file.readline(MAX_LINE):
        whole = line.endswith(b"\n") or len(line) < MAX_LINE
        yield line, whole
        while not whole:
            rest = file.readline(MAX_LINE)
            whole = rest.endswith(b"\n") or len(rest) < MAX_LINE


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _moment(found: re.Match[str], written: float) -> float:
    """The year is that of the last write; a day in the future of it belongs to the year before."""
    fields = [int(found[name]) for name in ("month", "day", "hour", "minute", "second")]
    year = time.localtime(written).tm_year
    try:
        moments = [time.mktime((one, *fields, 0, 0, -1)) for one in (year, year - 1)]  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return written
    moment = moments[0] if moments[0] <= written + DAY else moments[1]
    return moment + int(found["fraction"].ljust(6, "0")) / 1e6
