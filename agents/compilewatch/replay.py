"""Sends a recording: the requests an agent wrote to a file, with their times moved if asked, until each window is acknowledged."""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from compilewatch.config import Config, load
from compilewatch.errors import AgentError
from compilewatch.identity import instance_id
from compilewatch.outbox import Outbox
from compilewatch.sender import Sender
from compilewatch.transport import HttpTransport, Transport
from compilewatch.wire.codec import DecodeError, loads
from compilewatch.wire.report import Identity, Report, Request

MAX_FAILURES = 6
UNLIMITED = 1 << 40
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(slots=True)
class Recording:
    """One instance of a recording: its latest identity and all of its windows."""

    identity: Identity
    reports: list[Report]


def run(path: str, endpoint: str | None, key: str | None, *, shift_to_now: bool = False, new_ids: bool = False) -> int:
    """The command; 0 if every window was acknowledged or had been before."""
    config = load({"model": "replay", "endpoint": endpoint, "api_key": key})
    recordings = read(path)
    if shift_to_now:
        shift(recordings, time.time() - max((report.window[1] for one in recordings for report in one.reports), default=0.0))
    for one in recordings:
        if new_ids:
            one.identity.id = instance_id()
    sent = rejected = left = 0
    for one in recordings:
        outbox = send(one, _transport(config))
        left += len(outbox)
        rejected += outbox.rejected_windows
        sent += len(one.reports) - len(outbox) - outbox.rejected_windows
    print(f"{sent} windows of {len(recordings)} instances acknowledged, {rejected} refused, {left} not sent")
    return 0 if not left and not rejected else 1


def _transport(config: Config) -> Transport:
    if config.file is not None:
        raise AgentError("replay sends to a dashboard: give --endpoint http(s)://host[:port]")
    return HttpTransport(config.endpoint, config.api_key)


def read(path: str) -> list[Recording]:
    """The instances in a recording, plain or gzip, in the order of their first request."""
    found: dict[str, Recording] = {}
    try:
        with _opened(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    _add(found, line, f"{path}, line {number}")
    except (OSError, EOFError, zlib.error) as error:
        raise AgentError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    return list(found.values())


def _opened(path: str) -> gzip.GzipFile | BufferedReader:
    with Path(path).open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    return gzip.open(path, "rb") if packed else Path(path).open("rb")


def _add(found: dict[str, Recording], line: bytes, where: str) -> None:
    try:
        request = loads(Request, line)
    except DecodeError as error:
        raise AgentError(f"{where}: {error}") from None
    one = found.setdefault(request.instance.id, Recording(request.instance, []))
    one.identity = request.instance
    one.reports += request.reports


def shift(recordings: Iterable[Recording], seconds: float) -> None:
    """Moves every time in the recordings; what lay apart stays as far apart."""
    for one in recordings:
        one.identity.started += seconds
        for report in one.reports:
            report.window = (report.window[0] + seconds, report.window[1] + seconds)
            for compile in report.compiles:
                compile.at += seconds
            for fact in report.facts:
                fact.at += seconds


def send(one: Recording, transport: Transport) -> Outbox:
    """Sends the windows in batches, waiting and trying again as an agent does; answers with what could not be sent."""
    outbox = Outbox(max_bytes=UNLIMITED)
    for report in one.reports:
        outbox.add(report)
    sender = Sender(transport, outbox)
    while len(outbox) and sender.failures < MAX_FAILURES:
        time.sleep(max(0.0, sender.next_attempt - time.monotonic()))
        sender.attempt(one.identity)
    for problem, count in sender.refusals.items():
        print(f"{count} x {problem}")
    return outbox
