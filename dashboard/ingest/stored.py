"""What became of a batch, once it is durable."""

from __future__ import annotations

from dataclasses import dataclass

from compilewatch.wire.ack import Rejected
from compilewatch.wire.messages import SeqRange


@dataclass(slots=True)
class StoreResult:
    """The ranges to acknowledge, the number after the highest one, and what is refused for good;
    `held` are all ranges that are durable of the sender, None where none below the next number is
    missing."""

    acked: list[SeqRange]
    next_seq: int
    rejected: list[Rejected]
    held: list[SeqRange] | None = None
