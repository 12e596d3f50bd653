"""What a spool file holds: frames with a magic, a length and a checksum, so that a reader finds its way past whatever is damaged."""

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
"""Its first byte is none that JSON of ours holds."""
IDENTITY, WINDOW, WATERMARK = b"I", b"W", b"A"
MAX_PAYLOAD = 4 << 20
_HEAD = Struct(">4scII")
_WINDOW_HEAD = Struct(">QQdd")
_NUMBER = Struct(">Q")
READ_BYTES = 64 << 10
"""How much of a file is read at a time, at least."""
MOST_READ = 32 << 20
"""How much of a file is read at most: twice what a process writes."""
MOST_DOUBTED = 64 << 20
"""How many bytes may look like frames and be none: rubbish in which every few bytes promise a large frame would be checked for hours."""


class Frame(NamedTuple):
    """One frame as it was read."""

    kind: bytes
    payload: bytes


def frame(kind: bytes, payload: bytes) -> bytes:
    """The bytes of one frame."""
    return _HEAD.pack(MAGIC, kind, len(payload), zlib.crc32(payload, ord(kind))) + payload


def head_frames(identity: bytes) -> bytes:
    """What a file begins with: who its windows belong to, twice, for without it none of them can be sent."""
    return frame(IDENTITY, identity) * 2


def window_frame(entry: Entry) -> bytes:
    """A window with its range, its times and the bytes that are sent."""
    return frame(WINDOW, _WINDOW_HEAD.pack(*entry.seq, entry.start, entry.end) + entry.body)


def watermark_frame(first_waiting: int) -> bytes:
    """Says that every window below this sequence number is settled."""
    return frame(WATERMARK, _NUMBER.pack(first_waiting))


def window_read(payload: bytes) -> Entry | None:
    """The window in a frame's payload; None if it is none of ours."""
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
    """What a file says before its windows are sent."""

    identity: Identity | None = None
    watermark: int = 0
    """Windows below this sequence number need not be sent."""
    damaged: int = 0
    """Stretches of bytes that are no frame: at least one window or identity each."""


def contents_read(file: BinaryIO) -> Contents:
    """Reads a whole file once, holding one frame at a time; raises OSError."""
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
    """The windows that are not settled, in the order they were written; raises OSError."""
    for one in frames_read(file):
        entry = window_read(one.payload) if one is not None and one.kind == WINDOW else None
        if entry is not None and entry.seq[1] >= watermark:
            yield entry


def frames_read(file: BinaryIO) -> Iterator[Frame | None]:
    """Every frame that is whole, and None for each stretch of bytes that is no frame, or that is not read; raises OSError."""
    file.seek(0)
    buffer, at, ended, damaged = b"", 0, False, False
    unread, undoubted = MOST_READ, MOST_DOUBTED
    while True:
        found, wanted = _frame_at(buffer, at)
        if found is None and wanted > len(buffer) - at and not ended:
            more = file.read(min(unread, max(READ_BYTES, wanted - len(buffer) + at)))
            unread -= len(more)
            buffer, at, ended = buffer[at:] + more, 0, not more
        elif found is None and at < len(buffer):
            undoubted -= min(wanted, len(buffer) - at)
            damaged, at = True, _next_magic(buffer, at)
            if undoubted < 0:
                buffer, at, ended = b"", 0, True
        else:
            if damaged:
                yield None
            if found is None:
                return
            damaged, at = False, at + wanted
            yield found


def _frame_at(buffer: bytes, at: int) -> tuple[Frame | None, int]:
    """The frame that begins there, if one does, and how many bytes it takes, or takes to tell."""
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
    """Where the next magic is, or may begin when more is read."""
    found = buffer.find(MAGIC, at + 1)
    return found if found >= 0 else max(at + 1, len(buffer) - len(MAGIC) + 1)
