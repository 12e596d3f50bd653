"""Store result: the outcome of a durable batch."""

from __future__ import annotations

from dataclasses import dataclass

from compilewatch.wire.ack import Rejected
from compilewatch.wire.messages import SeqRange


@dataclass(slots=True)
class StoreResult:
    """The ranges to acknowledge, the number after the highest one, and the permanent refusals.
    `held` lists all durable ranges of the sender; None if no number below the next one is missing.
    """

    acked: list[SeqRange]
    next_seq: int
    rejected: list[Rejected]
    held: list[SeqRange] | None = None
