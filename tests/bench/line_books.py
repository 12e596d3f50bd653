"""Outcome of each acknowledged report, by instance: lost and doubled reports counted separately,
and both separate from reports without a response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX


@dataclass(frozen=True)
class Books:
    """Reports: `lost` were acknowledged and are in no minute. `doubled` were counted more than once
    or never accepted. `unanswered` have no response; they are stored and folded once."""

    lost: int
    doubled: int
    unanswered: int

    @property
    def balanced(self) -> bool:
        """Nothing acknowledged is lost, and nothing is counted twice."""
        return not (self.lost or self.doubled)

    def __str__(self) -> str:
        return (
            f"lost {self.lost}, doubled {self.doubled}, unknown outcome but kept {self.unanswered}"
        )


def books_close(
    *, acked: Mapping[str, int], taken: Mapping[str, int], folded: Mapping[str, int], others: int
) -> Books:
    """Compares the sequence numbers per instance: acknowledged to the sender, durable, and counted
    in minutes.

    `others` counts reports under the group names for instances beyond the limit; only their sum is
    known."""
    lost = doubled = unanswered = missing = 0
    for instance, acknowledged in acked.items():
        durable, counted = taken.get(instance, 0), folded.get(instance, 0)
        lost += max(0, acknowledged - durable)
        unanswered += max(0, durable - acknowledged)
        missing += max(0, durable - counted)
        doubled += max(0, counted - durable)
    return Books(lost + max(0, missing - others), doubled + max(0, others - missing), unanswered)


def others_of(folded: Mapping[str, int]) -> int:
    """The count under the group names."""
    return sum(
        windows
        for instance, windows in folded.items()
        if instance.startswith(OTHER_INSTANCE_PREFIX)
    )
