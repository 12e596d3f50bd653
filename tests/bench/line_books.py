"""What became of each acknowledged report, instance by instance: lost and doubled apart, and apart
from both what no answer told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.fleet.fold.keys import OTHER_INSTANCE_PREFIX


@dataclass(frozen=True)
class Books:
    """Reports: `lost` were acknowledged and are in no minute, `doubled` were counted more than once
    or never taken, of `untold` the answer did not arrive and they are stored and folded once."""

    lost: int
    doubled: int
    untold: int

    @property
    def balanced(self) -> bool:
        """Nothing acknowledged is lost, nothing is counted twice."""
        return not (self.lost or self.doubled)

    def __str__(self) -> str:
        return (
            f"lost {self.lost}, doubled {self.doubled}, of unknown outcome and kept {self.untold}"
        )


def books_close(
    *, acked: Mapping[str, int], taken: Mapping[str, int], folded: Mapping[str, int], others: int
) -> Books:
    """By instance: how many numbers were acknowledged to the sender, are durable, and were counted
    in minutes.

    `others` is what was counted meanwhile under names that stand for instances without room; of
    these only the sum is known."""
    lost = doubled = untold = missing = 0
    for instance, told in acked.items():
        durable, counted = taken.get(instance, 0), folded.get(instance, 0)
        lost += max(0, told - durable)
        untold += max(0, durable - told)
        missing += max(0, durable - counted)
        doubled += max(0, counted - durable)
    return Books(lost + max(0, missing - others), doubled + max(0, others - missing), untold)


def others_of(folded: Mapping[str, int]) -> int:
    """What was counted under such names."""
    return sum(
        windows
        for instance, windows in folded.items()
        if instance.startswith(OTHER_INSTANCE_PREFIX)
    )
