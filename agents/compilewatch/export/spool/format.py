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
MAX_PAYLOAD_BYTES = 4 << 20
_HEAD = Struct(">4scII")
_WINDOW_HEAD = Struct(">QQdd")
_NUMBER = Struct(">Q")
READ_CHUNK_BYTES = 64 << 10
"""Minimum number of bytes per read."""
MAX_READ_BYTES = 32 << 20
"""Maximum number of bytes read from one file: twice the size that a process writes."""
MAX_SUSPECT_BYTES = 64 << 20
"""Maximum number of bytes checked in vain.

Crafted or random data in which every few bytes announce a large frame would otherwise take hours.
"""


class Frame(NamedTuple):
    """One decoded frame."""

    kind: bytes
    payload: bytes


def encode_frame(kind: bytes, payload: bytes) -> bytes:
    """Encodes one frame."""
    return _HEAD.pack(MAGIC, kind, len(payload), zlib.crc32(payload, ord(kind))) + payload


def encode_head(identity: bytes) -> bytes:
    """Encodes the head of a file: the owner's identity, twice, because no window can be sent
    without it.
    """
    return encode_frame(IDENTITY, identity) * 2


def encode_window(entry: Entry) -> bytes:
    """Encodes a window with its range, its times and the bytes to send."""
    return encode_frame(WINDOW, _WINDOW_HEAD.pack(*entry.seq, entry.start, entry.end) + entry.body)


def encode_watermark(first_waiting: int) -> bytes:
    """Encodes the mark that every window below this sequence number is settled."""
    return encode_frame(WATERMARK, _NUMBER.pack(first_waiting))


def decode_window(payload: bytes) -> Entry | None:
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
    damaged_ranges: int = 0
    """Number of damaged byte ranges; each held at least one window or identity."""


def read_contents(file: BinaryIO) -> Contents:
    """Reads a whole file once with one frame in memory at a time; raises OSError."""
    contents = Contents()
    for record in read_frames(file):
        if record is None:
            contents.damaged_ranges += 1
        elif record.kind == IDENTITY:
            contents.identity = _identity_read(record.payload) or contents.identity
        elif record.kind == WATERMARK and len(record.payload) == _NUMBER.size:
            contents.watermark = _NUMBER.unpack(record.payload)[0]
    return contents


def _identity_read(payload: bytes) -> Identity | None:
    try:
        return loads(Identity, payload)
    except DecodeError:
        return None


def read_windows(file: BinaryIO, watermark: int) -> Iterator[Entry]:
    """Yields the unsettled windows in the order of writing; raises OSError."""
    for record in read_frames(file):
        entry = (
            decode_window(record.payload) if record is not None and record.kind == WINDOW else None
        )
        if entry is not None and entry.seq[1] >= watermark:
            yield entry


def read_frames(file: BinaryIO) -> Iterator[Frame | None]:
    """Yields each intact frame, and None for each damaged or skipped byte range; raises OSError."""
    file.seek(0)
    buffer, at, ended, damaged = b"", 0, False, False
    unread, suspect_budget = MAX_READ_BYTES, MAX_SUSPECT_BYTES
    while True:
        record, needed = _frame_at(buffer, at)
        if record is None and needed > len(buffer) - at and not ended:
            data = file.read(min(unread, max(READ_CHUNK_BYTES, needed - len(buffer) + at)))
            unread -= len(data)
            buffer, at, ended = buffer[at:] + data, 0, not data
        elif record is None and at < len(buffer):
            suspect_budget -= min(needed, len(buffer) - at)
            damaged, at = True, _next_magic(buffer, at)
            if suspect_budget < 0:
                buffer, at, ended = b"", 0, True
        else:
            if damaged:
                yield None
            if record is None:
                return
            damaged, at = False, at + needed
            yield record


def _frame_at(buffer: bytes, at: int) -> tuple[Frame | None, int]:
    """Returns the frame at this offset, if any, and the bytes that it takes or that are needed to
    decide.
    """
    head = buffer[at : at + _HEAD.size]
    if len(head) < _HEAD.size:
        return None, _HEAD.size if head[: len(MAGIC)] == MAGIC[: len(head)] else 0
    magic, kind, length, checksum = _HEAD.unpack(head)
    if magic != MAGIC or length > MAX_PAYLOAD_BYTES:
        return None, 0
    payload = buffer[at + _HEAD.size : at + _HEAD.size + length]
    whole = len(payload) == length and zlib.crc32(payload, ord(kind)) == checksum
    return Frame(kind, payload) if whole else None, _HEAD.size + length


def _next_magic(buffer: bytes, at: int) -> int:
    """Returns the offset of the next magic, or of a partial one at the end of the buffer."""
    offset = buffer.find(MAGIC, at + 1)
    return offset if offset >= 0 else max(at + 1, len(buffer) - len(MAGIC) + 1)
