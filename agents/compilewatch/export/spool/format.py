"""Spool file format: framed records (magic, kind, length, CRC-32), so that a reader resynchronizes
after damage.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import BinaryIO, NamedTuple

from compilewatch.export.outbox import Entry
from compilewatch.wire.codec import DecodeError, loads
from compilewatch.wire.messages import Identity

MAGIC = b"\xc3CW1"
"""Its first byte occurs in none of the agent's JSON."""
IDENTITY, WINDOW, WATERMARK = b"I", b"W", b"A"
MAX_PAYLOAD = 4 << 20
_HEAD = Struct(">4scII")
_WINDOW_HEAD = Struct(">QQdd")
_NUMBER = Struct(">Q")
READ_BYTES = 64 << 10
"""Minimum number of bytes per read."""
MOST_READ = 32 << 20
"""Maximum number of bytes read from one file: twice the size that a process writes."""
MOST_DOUBTED = 64 << 20
"""Maximum number of bytes checked in vain.

Crafted or random data in which every few bytes announce a large frame would otherwise take hours.
"""


class Frame(NamedTuple):
    """One decoded frame."""

    kind: bytes
    payload: bytes


def frame(kind: bytes, payload: bytes) -> bytes:
    """Encodes one frame."""
    return _HEAD.pack(MAGIC, kind, len(payload), zlib.crc32(payload, ord(kind))) + payload


def head_frames(identity: bytes) -> bytes:
    """Encodes the head of a file: the owner's identity, twice, because no window can be sent
    without it.
    """
    return frame(IDENTITY, identity) * 2


def window_frame(entry: Entry) -> bytes:
    """Encodes a window with its range, its times and the bytes to send."""
    return frame(WINDOW, _WINDOW_HEAD.pack(*entry.seq, entry.start, entry.end) + entry.body)


def watermark_frame(first_waiting: int) -> bytes:
    """Encodes the mark that every window below this sequence number is settled."""
    return frame(WATERMARK, _NUMBER.pack(first_waiting))


def window_read(payload: bytes) -> Entry | None:
    """Decodes the window in a frame's payload; None if the payload is invalid."""
    if len(payload) <= _WINDOW_HEAD.size:
        return None
    first, last, start, end = _WINDOW_HEAD.unpack_from(payload)
    return (
        Entry((first, last), start, end, payload[_WINDOW_HEAD.size :], attempted=True)
        if 1 <= first <= last
        else None
    )


@dataclass(slots=True)
class Contents:
    """Summary of a file, read before its windows are sent."""

    identity: Identity | None = None
    watermark: int = 0
    """Windows below this sequence number are settled."""
    damaged: int = 0
    """Number of damaged byte ranges; each held at least one window or identity."""


def contents_read(file: BinaryIO) -> Contents:
    """Reads a whole file once with one frame in memory at a time; raises OSError."""
    found = Contents()
    for one in frames_read(file):
        if one is None:
            found.damaged += 1
        elif one.kind == IDENTITY:
            found.identity = _identity_read(one.payload) or found.identity
        elif one.kind == WATERMARK and len(one.payload) == _NUMBER.size:
            found.watermark = _NUMBER.unpack(one.payload)[0]
    return found


def _identity_read(payload: bytes) -> Identity | None:
    try:
        return loads(Identity, payload)
    except DecodeError:
        return None


def windows_read(file: BinaryIO, watermark: int) -> Iterator[Entry]:
    """Yields the unsettled windows in the order of writing; raises OSError."""
    for one in frames_read(file):
        entry = window_read(one.payload) if one is not None and one.kind == WINDOW else None
        if entry is not None and entry.seq[1] >= watermark:
            yield entry


def frames_read(file: BinaryIO) -> Iterator[Frame | None]:
    """Yields each intact frame, and None for each damaged or skipped byte range; raises OSError."""
    file.seek(0)
    buffer, at, ended, damaged = b"", 0, False, False
    unread, suspect_budget = MOST_READ, MOST_DOUBTED
    while True:
        found, wanted = _frame_at(buffer, at)
        if found is None and wanted > len(buffer) - at and not ended:
            more = file.read(min(unread, max(READ_BYTES, wanted - len(buffer) + at)))
            unread -= len(more)
            buffer, at, ended = buffer[at:] + more, 0, not more
        elif found is None and at < len(buffer):
            suspect_budget -= min(wanted, len(buffer) - at)
            damaged, at = True, _next_magic(buffer, at)
            if suspect_budget < 0:
                buffer, at, ended = b"", 0, True
        else:
            if damaged:
                yield None
            if found is None:
                return
            damaged, at = False, at + wanted
            yield found


def _frame_at(buffer: bytes, at: int) -> tuple[Frame | None, int]:
    """Returns the frame at this offset, if any, and the bytes that it takes or that are needed to
    decide.
    """
    head = buffer[at : at + _HEAD.size]
    if len(head) < _HEAD.size:
        return None, _HEAD.size if head[: len(MAGIC)] == MAGIC[: len(head)] else 0
    magic, kind, length, checksum = _HEAD.unpack(head)
    if magic != MAGIC or length > MAX_PAYLOAD:
        return None, 0
    payload = buffer[at + _HEAD.size : at + _HEAD.size + length]
    whole = len(payload) == length and zlib.crc32(payload, ord(kind)) == checksum
    return Frame(kind, payload) if whole else None, _HEAD.size + length


def _next_magic(buffer: bytes, at: int) -> int:
    """Returns the offset of the next magic, or of a partial one at the end of the buffer."""
    found = buffer.find(MAGIC, at + 1)
    return found if found >= 0 else max(at + 1, len(buffer) - len(MAGIC) + 1)
