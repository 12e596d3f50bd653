"""The server's answer to a request: which sequence ranges are durable, which are refused for good, what comes next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compilewatch.wire.messages import SeqRange

MARKER = 1

REJECTED_CODES = {
    "partial_overlap": "the range overlaps one that is already acknowledged without being covered by it",
    "range_conflict": "another body is stored under this range: two processes report under one instance id",
    "gap_closed": "the range lies in a gap that was closed because the sender had more than 64 ranges",
    "too_old": "the window ended more than 7 days ago",
    "in_future": "the window ends more than 5 minutes in the future, after the clock offset is taken out",
    "invalid_window": "the window ends before it starts, or its times are not Unix seconds",
    "invalid_seq": "the sequence range is not two positive whole numbers in order",
    "invalid_sketch": "a sketch contradicts itself: its count is not the sum of its bins, or its minimum exceeds its maximum",
    "invalid_report": "a field is missing or has the wrong type; the detail names it",
}


@dataclass(slots=True)
class Rejected:
    """A report refused for good; the agent drops it and counts it."""

    seq: SeqRange
    code: str
    detail: str = ""


@dataclass(slots=True)
class Ack:
    """The 200 answer, sent only after the rows are committed."""

    acked: list[SeqRange]
    next_seq: int
    commands: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    held: list[SeqRange] | None = None
    """Every range of this instance that is durable, where some below `next_seq` is missing: an agent sees by it what a database that was
    restored from a backup lost. None: nothing below `next_seq` is missing."""
    cw: int = MARKER
