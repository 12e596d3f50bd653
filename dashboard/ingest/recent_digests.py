"""Recent digests: decide whether a report in a stored range is the stored report or another one.
Pure code.

An agent resends a window as the same bytes, and sends no later window before the answer. A repeat
is therefore among the last reports. For older reports, only the time of the window remains.

Windows follow each other in time as in number. If a window ends after windows that were stored long
after its own range, a second process with the same ID sent it: a copied virtual machine or a
restored checkpoint.

A report that neither check contradicts counts as a repeat. This includes reports that a web process
of the previous release stored.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import NamedTuple

from compilewatch.wire.messages import SeqRange

MAX_RECENT_REPORTS = 16
"""Digests per sender: a batch holds one report when nothing waits. They take 512 bytes of the
sender's row."""
_RECORD = struct.Struct(">QQ8sd")
MAX_RECENT_BYTES = MAX_RECENT_REPORTS * _RECORD.size


class ReportDigest(NamedTuple):
    """A stored report: its last number, the count of numbers before it in its range, a digest of
    its text, and its window's end by the agent's clock."""

    last: int
    before: int
    digest: bytes
    end: float

    def overlaps(self, seq: SeqRange) -> bool:
        """True if the two ranges share a number."""
        return self.last - self.before <= seq[1] and seq[0] <= self.last


def digest_report(seq: SeqRange, text: bytes, end: float) -> ReportDigest:
    """The digest of a report; `text` is its JSON as stored."""
    return ReportDigest(seq[1], seq[1] - seq[0], hashlib.blake2b(text, digest_size=8).digest(), end)


def pack_recent(records: Iterable[ReportDigest]) -> bytes:
    """Packs the newest digests for storage, in order of arrival."""
    return b"".join(_RECORD.pack(*one) for one in list(records)[-MAX_RECENT_REPORTS:])


def unpack_recent(stored: bytes | memoryview | None) -> list[ReportDigest]:
    """The stored digests; empty if an earlier release wrote the row."""
    return [ReportDigest(*values) for values in _RECORD.iter_unpack(stored or b"")]


def contradicts(records: list[ReportDigest], report: ReportDigest) -> bool:
    """True if this report, whose range is stored, certainly differs from the stored one."""
    seq = (report.last - report.before, report.last)
    met = [one for one in records if one.overlaps(seq)]
    if met:
        return met[-1][:3] != report[:3]
    oldest = min(records, default=None)
    return oldest is not None and report.last < oldest.last and report.end > oldest.end
