"""Time bins: a time span divided into equal bins."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TimeBins:
    """Span in minutes since 1970: `first` inclusive, `last` exclusive, `step` minutes per bin."""

    first: int
    last: int
    step: int

    @classmethod
    def ending(cls, end: int, minutes: int, step: int) -> "TimeBins":
        """Return a span of about `minutes` that ends before `end`.

        A step of hours aligns to whole hours and includes the current hour.
        """
        if step % 60 == 0:
            end = -(-end // 60) * 60
        return cls(end - -(-minutes // step) * step, end, step)

    @property
    def count(self) -> int:
        """Number of bins."""
        return (self.last - self.first) // self.step

    def bin_of(self, minute: int) -> int | None:
        """Return the bin of a minute; None outside the span."""
        return (minute - self.first) // self.step if self.first <= minute < self.last else None

    def starts(self) -> list[int]:
        """Return the first minute of every bin."""
        return list(range(self.first, self.last, self.step))
