"""A span of time cut into equal bins."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeBins:
    """Minutes since 1970: `first` inclusive, `last` exclusive, `step` minutes a bin."""

    first: int
    last: int
    step: int

    @classmethod
    def ending(cls, end: int, minutes: int, step: int) -> "TimeBins":
        """The span of about `minutes` that ends before `end`; a step of hours falls on whole hours,
        with the running one in it."""
        if step % 60 == 0:
            end = -(-end // 60) * 60
        return cls(end - -(-minutes // step) * step, end, step)

    @property
    def count(self) -> int:
        """How many bins."""
        return (self.last - self.first) // self.step

    def bin_of(self, minute: int) -> int | None:
        """The bin of a minute, None outside."""
        return (minute - self.first) // self.step if self.first <= minute < self.last else None

    def starts(self) -> list[int]:
        """The first minute of every bin."""
        return list(range(self.first, self.last, self.step))
