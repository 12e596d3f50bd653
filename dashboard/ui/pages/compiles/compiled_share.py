"""Share of compiled calls among calls with a known execution mode, with error budget and burn
rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.fleet.selectors.versions.compiled_share import SeriesCalls
from dashboard.vocabulary import numbers

ENOUGH = 200
"""Minimum number of calls with a known mode for a comparison with the budget."""
TIMED, MOST = 20, 0.9
"""Minimum number of timed calls for the mean of a series, and minimum share of calls in such
series."""


@dataclass(frozen=True)
class CompiledShare:
    """Counts since the deployment and in the last hour; the budget is a share, or None if not
    set."""

    calls: int
    known: int
    compiled: int
    recent_known: int
    recent_compiled: int
    budget: float | None
    adoption: float | None
    """This version's share of the environment's calls in the last minutes."""
    time_share: float | None = None
    """Estimated share of call time in compiled calls, assuming equal durations within a region and
    shape."""
    on_gpu: bool = False
    """Whether `time_share` refers to GPU time."""
    nothing: bool = False
    """Whether the agents reported that compilation was requested and nothing was compiled."""

    @property
    def share(self) -> float | None:
        """Share of compiled calls among calls with a known mode; 0 if nothing was compiled, None if
        no mode is known."""
        if self.known:
            return self.compiled / self.known
        return 0.0 if self.nothing and self.calls else None

    @property
    def recent(self) -> float | None:
        """The share in the last hour."""
        return self.recent_compiled / self.recent_known if self.recent_known else None

    @property
    def used(self) -> float | None:
        """Used part of the error budget (1 is all of it); None without a budget or with too few
        calls."""
        if self.budget is None or self.share is None or self.known < ENOUGH:
            return None
        return (1 - self.share) / (1 - self.budget)

    @property
    def burn(self) -> float | None:
        """Burn rate in the last hour; 1 is the rate that the budget allows."""
        if self.budget is None or self.recent is None or self.recent_known < ENOUGH:
            return None
        return (1 - self.recent) / (1 - self.budget)

    @property
    def broken(self) -> bool:
        """Whether the error budget is used up or burns too fast."""
        return (self.used or 0.0) > 1 or (self.burn or 0.0) > 1

    @property
    def sentence(self) -> str:
        """The status of the budget as text."""
        if self.budget is None:
            return "no budget set"
        if self.share is None:
            return f"budget {numbers.percent(self.budget)}; execution mode of all calls unknown"
        if self.used is None:
            return (
                f"budget {numbers.percent(self.budget)}; too few calls to evaluate "
                f"({numbers.number(self.known)} with known mode)"
            )
        used = (
            f"error budget used {numbers.number(_short(self.used))} times over"
            if self.used > 1
            else f"{numbers.percent(self.used)} of the error budget used"
        )
        text = f"budget {numbers.percent(self.budget)}, {used}"
        if self.burn is not None and self.burn > 1:
            return (
                f"{text}; burn rate {numbers.number(_short(self.burn))} times the allowed rate "
                "in the last hour"
            )
        return f"{text}; not burning in the last hour" if self.used > 1 else text

    @property
    def of_time(self) -> str:
        """The estimated share by time; empty with too few timed calls."""
        if self.time_share is None:
            return ""
        return (
            f"about {numbers.percent(self.time_share)} of "
            f"{'GPU time' if self.on_gpu else 'call time'}"
        )

    @property
    def looked(self) -> str:
        """The number of calls behind the share."""
        if self.nothing and self.calls and not self.known:
            return f"of {self.calls:,} calls; compilation was requested, nothing was compiled"
        part = f" ({numbers.percent(self.known / self.calls)})" if self.calls > self.known else ""
        return (
            f"of {self.known:,} calls with known mode, {self.calls:,} in all{part}"
            if self.calls
            else "no calls"
        )


def compute_compiled_share(
    own: Sequence[SeriesCalls],
    everyone: Sequence[SeriesCalls],
    environment: str,
    budget: float | None,
    *,
    nothing: bool = False,
) -> CompiledShare:
    """Sums the series of the version, without regions that are eager on purpose."""
    counted = [one for one in own if not one.eager]
    calls = sum(one.recent_calls for one in everyone if one.environment == environment)
    time_share, on_gpu = _of_time([one for one in counted if one.known])
    return CompiledShare(
        calls=sum(one.calls for one in counted),
        known=sum(one.known for one in counted),
        compiled=sum(one.compiled for one in counted),
        recent_known=sum(one.recent_known for one in counted),
        recent_compiled=sum(one.recent_compiled for one in counted),
        budget=budget,
        adoption=sum(one.recent_calls for one in own) / calls if calls else None,
        time_share=time_share,
        on_gpu=on_gpu,
        nothing=nothing,
    )


def _of_time(looked: Sequence[SeriesCalls]) -> tuple[float | None, bool]:
    """Weights each series by the time of its calls, in GPU time if all series have GPU timings;
    None with too few timed calls."""
    on_gpu = bool(looked) and all(one.gpu_count >= TIMED for one in looked)
    timed = [(one, one.gpu_sum / one.gpu_count) for one in looked] if on_gpu else _by_wall(looked)
    whole = sum(one.calls * each for one, each in timed)
    if not whole or sum(one.calls for one, _ in timed) < MOST * sum(one.calls for one in looked):
        return None, False
    return sum(one.calls * each * one.compiled / one.known for one, each in timed) / whole, on_gpu


def _by_wall(looked: Sequence[SeriesCalls]) -> list[tuple[SeriesCalls, float]]:
    return [
        (one, one.latency_sum / one.latency_count) for one in looked if one.latency_count >= TIMED
    ]


def _short(value: float) -> float:
    return round(value, 1) if value < 10 else round(value)
