"""Acknowledgement: the sequence ranges that the server stored, the ranges it rejected, and the next
number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compilewatch.wire.messages import SeqRange

MARKER = 1

REJECTED_CODES = {
    "partial_overlap": "the range overlaps an acknowledged range that does not cover it",
    "range_conflict": (
        "another body is stored under this range: two processes report under one instance id"
    ),
    "gap_closed": (
        "the range lies in a gap that was closed because the sender had more than 64 ranges"
    ),
    "too_old": "the window ended more than 7 days ago",
    "in_future": (
        "the window ends more than 5 minutes in the future, after the clock offset is subtracted"
    ),
    "invalid_window": "the window ends before it starts, or its times are not Unix seconds",
    "invalid_seq": "the sequence range is not two positive integers in order",
    "invalid_sketch": (
        "the sketch is inconsistent: its count is not the sum of its bins, or its minimum "
        "exceeds its maximum"
    ),
    "invalid_report": "a field is missing or has the wrong type; the detail names it",
}


@dataclass(slots=True)
class Rejected:
    """A report that the server rejected permanently; the agent drops and counts it."""

    seq: SeqRange
    code: str
    detail: str = ""


@dataclass(slots=True)
class Ack:
    """The body of a 200 answer, which the server sends only after it committed the rows."""

    acked: list[SeqRange]
    next_seq: int
    commands: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    held: list[SeqRange] | None = None
    """All stored ranges of this instance, if some below `next_seq` are missing.

    The agent then sends windows again that a restored database lost. None: nothing below `next_seq`
    is missing.
    """
    cw: int = MARKER
