"""`compilewatch replay`: sends recorded requests to a dashboard, optionally with shifted times,
until each window is acknowledged.
"""

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
from compilewatch.export.transport import Transport, create_transport
from compilewatch.identity.identity import instance_id
from compilewatch.identity.redaction import identity_redact, redact_report
from compilewatch.wire.codec import DecodeError, loads
from compilewatch.wire.messages import Identity, Report, Request

MAX_FAILURES = 6
MAX_NAMED_DAMAGES = 10
"""Number of damaged lines that are printed; further ones are only counted."""
REQUEST_PREFIX = b'{"v":'
UNLIMITED = 1 << 40
MAX_LINE_BYTES = 16 << 20
"""Line limit of a recording.

Requests are far smaller; a crafted gzip file could expand one line to any size.
"""
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(slots=True)
class Recording:
    """One instance of a recording: its latest identity and all its windows."""

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
    """Runs the command; returns 0 if every window is acknowledged."""
    config = load({"model": "replay", "endpoint": endpoint, "api_key": key})
    if config.file is not None:
        raise AgentError("replay sends to a dashboard: pass --endpoint http(s)://host[:port]")
    recordings, damages = read(path)
    if new_ids:
        for recording in recordings:
            recording.identity.id = instance_id()
    return deliver(recordings, config, damages, len(damages), shift_to_now=shift_to_now)


def deliver(
    recordings: list[Recording],
    config: Config,
    damages: list[str],
    damaged: int,
    *,
    shift_to_now: bool,
) -> int:
    """Sends the windows of all recordings and prints the result.

    Returns 0 if all windows are acknowledged and nothing was damaged.
    """
    if shift_to_now:
        shift(
            recordings,
            time.time()
            - max(
                (report.window[1] for recording in recordings for report in recording.reports),
                default=0.0,
            ),
        )
    for recording in recordings:
        if config.redact:
            identity_redact(recording.identity)
            recording.reports = [redact_report(report) for report in recording.reports]
    sent = rejected = unsent = 0
    for recording in recordings:
        outbox = send(recording, create_transport(config))
        unsent += len(outbox)
        rejected += outbox.rejected_windows
        sent += len(recording.reports) - len(outbox) - outbox.rejected_windows
    print(
        f"{sent} windows of {len(recordings)} instances acknowledged, {rejected} rejected, "
        f"{unsent} not sent"
    )
    if rejected:
        print(
            "rejected: the dashboard holds these windows with other times or contents; "
            "replay --new-ids sends them as new instances"
        )
    _print_damages(damages, damaged)
    return 0 if not (unsent or rejected or damaged) else 1


def _print_damages(damages: list[str], damaged: int) -> None:
    for damage in damages[:MAX_NAMED_DAMAGES]:
        print(f"skipped: {damage}")
    named = min(len(damages), MAX_NAMED_DAMAGES)
    if damaged > named:
        print(f"skipped: {damaged - named} more")


def read(path: str) -> tuple[list[Recording], list[str]]:
    """Reads a plain or gzip recording.

    Returns its instances in order of their first request, and the damages in words. A process that
    is killed while it writes leaves half a line. Raises an AgentError if no request is intact.
    """
    recordings: dict[str, Recording] = {}
    damages: list[str] = []
    number = 0
    try:
        with _open(path) as lines:
            while line := lines.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise OSError(
                        f"line {number} is longer than {MAX_LINE_BYTES} bytes, the limit of a "
                        "recording"
                    )
                damages += [f"line {number}: {damage}" for damage in _add(recordings, line)]
    except (OSError, EOFError, zlib.error) as error:
        if not recordings:
            raise AgentError(
                f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
            ) from None
        damages.append(f"after line {number}: {error}")
    if damages and not recordings:
        raise AgentError(f"no request in {path} is intact; {damages[0]}")
    return list(recordings.values()), damages


def _open(path: str) -> gzip.GzipFile | BufferedReader:
    with Path(path).open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    return gzip.open(path, "rb") if packed else Path(path).open("rb")


def _add(recordings: dict[str, Recording], line: bytes) -> list[str]:
    """Adds the request of a line and returns its damages.

    Half of another request may precede an intact one.
    """
    if not line.strip():
        return []
    damages: list[str] = []
    begin = 0
    while begin >= 0:
        try:
            request = loads(Request, line[begin:])
        except DecodeError as error:
            damages = damages or [str(error)]
            begin = line.find(REQUEST_PREFIX, begin + 1)
            continue
        recording = recordings.setdefault(request.instance.id, Recording(request.instance, []))
        recording.identity = request.instance
        recording.reports += request.reports
        break
    return damages


def shift(recordings: Iterable[Recording], seconds: float) -> None:
    """Shifts all times in the recordings by the same number of seconds."""
    for recording in recordings:
        recording.identity.started += seconds
        for report in recording.reports:
            report.window = (report.window[0] + seconds, report.window[1] + seconds)
            for compile in report.compiles:
                compile.at += seconds
            for fact in report.facts:
                fact.at += seconds


def send(recording: Recording, transport: Transport) -> Outbox:
    """Sends the windows in batches, with the retries of an agent.

    Returns the queue of windows that were not sent.
    """
    outbox = Outbox(max_bytes=UNLIMITED)
    for report in recording.reports:
        outbox.add(report)
    sender = Sender(transport, outbox)
    while len(outbox) and sender.failures < MAX_FAILURES and not sender.is_refused:
        time.sleep(max(0.0, sender.next_attempt - time.monotonic()))
        sender.attempt(recording.identity)
    for problem, count in sender.refusals.items():
        print(f"{count} x {problem}")
    return outbox
