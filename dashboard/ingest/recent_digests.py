"""Digests of the reports that a sender stored last: whether a report under a stored range is that
report, or another one.

An agent sends a window again as the bytes that it sent first, and nothing after it before that is
settled: a repeat is among the last reports. Of an older one the time remains. Windows follow each
other in time as they do in number, so one that ends after those that were stored long after it was
made by a second process with the same id: a copy of a virtual machine, or a checkpoint that was
restored. What neither says, such as reports that a web process of the release before stored, is
taken for a repeat. Pure code."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import NamedTuple

from compilewatch.wire.messages import SeqRange

MAX_RECENT_REPORTS = 16
"""Reports: a batch has one where nothing waits; 512 bytes of a sender's row."""
_RECORD = struct.Struct(">QQ8sd")
MAX_RECENT_BYTES = MAX_RECENT_REPORTS * _RECORD.size


class ReportDigest(NamedTuple):
    """A stored report: its last number, how many numbers precede that in its range, a digest of its
    text, and when its window ended by the agent's clock."""

    last: int
    before: int
    digest: bytes
    end: float

    def overlaps(self, seq: SeqRange) -> bool:
        """Whether the two ranges share a number."""
        return self.last - self.before <= seq[1] and seq[0] <= self.last


def digest_report(seq: SeqRange, text: bytes, end: float) -> ReportDigest:
    """What is kept of a report; `text` is its JSON as it is stored."""
    return ReportDigest(seq[1], seq[1] - seq[0], hashlib.blake2b(text, digest_size=8).digest(), end)


def pack_recent(records: Iterable[ReportDigest]) -> bytes:
    """The newest of them as they are stored, in the order in which they came."""
    return b"".join(_RECORD.pack(*one) for one in list(records)[-MAX_RECENT_REPORTS:])


def unpack_recent(stored: bytes | memoryview | None) -> list[ReportDigest]:
    """The stored records; none where an earlier release wrote the row."""
    return [ReportDigest(*values) for values in _RECORD.iter_unpack(stored or b"")]


def contradicts(records: list[ReportDigest], report: ReportDigest) -> bool:
    """Whether this report, whose range is stored, is certainly another one than was stored."""
    seq = (report.last - report.before, report.last)
    met = [one for one in records if one.overlaps(seq)]
    if met:
        return met[-1][:3] != report[:3]
    oldest = min(records, default=None)
    return oldest is not None and report.last < oldest.last and report.end > oldest.end
