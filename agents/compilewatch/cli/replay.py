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
from compilewatch.export.outbox import Outbox
from compilewatch.export.sender import Sender
from compilewatch.export.transport import Transport, transport_of
from compilewatch.identity.identity import instance_id
from compilewatch.identity.redaction import identity_redact, report_redacted
from compilewatch.wire.codec import DecodeError, loads
from compilewatch.wire.messages import Identity, Report, Request

MAX_FAILURES = 6
MAX_NAMED = 10
"""Damaged lines that are named; the others are counted."""
REQUEST_BEGINS = b'{"v":'
UNLIMITED = 1 << 40
MAX_LINE_BYTES = 16 << 20
"""Of a recording: a request is smaller by far, and a packed file may hold a line as long as memory."""
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(slots=True)
class Recording:
    """One instance of a recording: its latest identity and all of its windows."""

    identity: Identity
    reports: list[Report]


def run(
    path: str,
    endpoint: str | None,
    key: str | None,
    *,
    shift_to_now: bool = False,
    new_ids: bool = False,
) -> int:
    """The command; 0 if every window was acknowledged or had been before."""
    config = load({"model": "replay", "endpoint": endpoint, "api_key": key})
    if config.file is not None:
        raise AgentError("replay sends to a dashboard: give --endpoint http(s)://host[:port]")
    recordings, damages = read(path)
    if new_ids:
        for one in recordings:
            one.identity.id = instance_id()
    return deliver(recordings, config, damages, len(damages), shift_to_now=shift_to_now)


def deliver(
    recordings: list[Recording],
    config: Config,
    damages: list[str],
    damaged: int,
    *,
    shift_to_now: bool,
) -> int:
    """Sends the windows of all recordings and prints what became of them and what was damaged; 0 if all are there and nothing was."""
    if shift_to_now:
        shift(
            recordings,
            time.time()
            - max((report.window[1] for one in recordings for report in one.reports), default=0.0),
        )
    for one in recordings:
        if config.redact:
            identity_redact(one.identity)
            one.reports = [report_redacted(report) for report in one.reports]
    sent = rejected = left = 0
    for one in recordings:
        outbox = send(one, transport_of(config))
        left += len(outbox)
        rejected += outbox.rejected_windows
        sent += len(one.reports) - len(outbox) - outbox.rejected_windows
    print(
        f"{sent} windows of {len(recordings)} instances acknowledged, {rejected} refused, {left} not sent"
    )
    if rejected:
        print(
            "refused: windows that the dashboard holds with other times or contents; replay --new-ids sends them as new instances"
        )
    for damage in damages[:MAX_NAMED]:
        print(f"left out: {damage}")
    named = min(len(damages), MAX_NAMED)
    if damaged > named:
        print(f"left out: {damaged - named} more")
    return 0 if not (left or rejected or damaged) else 1


def read(path: str) -> tuple[list[Recording], list[str]]:
    """The instances in a recording, plain or gzip, in the order of their first request, and what in it is damaged: a process that is
    killed while it writes leaves half a line. Raises an AgentError if nothing in it is whole."""
    found: dict[str, Recording] = {}
    damages: list[str] = []
    number = 0
    try:
        with _opened(path) as lines:
            while line := lines.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise OSError(
                        f"line {number} is longer than {MAX_LINE_BYTES} bytes, which no agent writes"
                    )
                damages += [f"line {number}: {damage}" for damage in _add(found, line)]
    except (OSError, EOFError, zlib.error) as error:
        if not found:
            raise AgentError(
                f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
            ) from None
        damages.append(f"what follows line {number}: {error}")
    if damages and not found:
        raise AgentError(f"nothing in {path} is whole; {damages[0]}")
    return list(found.values()), damages


def _opened(path: str) -> gzip.GzipFile | BufferedReader:
    with Path(path).open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    return gzip.open(path, "rb") if packed else Path(path).open("rb")


def _add(found: dict[str, Recording], line: bytes) -> list[str]:
    """Takes the request of a line and answers what is damaged in it: before a whole request may stand half of another."""
    if not line.strip():
        return []
    damages: list[str] = []
    begin = 0
    while begin >= 0:
        try:
            request = loads(Request, line[begin:])
        except DecodeError as error:
            damages = damages or [str(error)]
            begin = line.find(REQUEST_BEGINS, begin + 1)
            continue
        one = found.setdefault(request.instance.id, Recording(request.instance, []))
        one.identity = request.instance
        one.reports += request.reports
        break
    return damages


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
    while len(outbox) and sender.failures < MAX_FAILURES and not sender.refused:
        time.sleep(max(0.0, sender.next_attempt - time.monotonic()))
        sender.attempt(one.identity)
    for problem, count in sender.refusals.items():
        print(f"{count} x {problem}")
    return outbox
