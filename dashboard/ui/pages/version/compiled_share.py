"""The share of calls that ran compiled, of those that somebody looked at, against its budget: how
much is used, how fast it burns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.fleet.selectors.versions.compiled_share import SeriesCalls
from dashboard.vocabulary import numbers

ENOUGH = 200
"""Looked-at calls from which a share is held against a budget."""
TIMED, MOST = 20, 0.9
"""Timed calls from which a series has a mean, and the share of the calls that have to be in such
series."""


@dataclass(frozen=True)
class CompiledShare:
    """Counts since the deployment and of the last hour; the budget is a share, None where none is
    set."""

    calls: int
    known: int
    compiled: int
    recent_known: int
    recent_compiled: int
    budget: float | None
    adoption: float | None
    """The share of the environment's calls of the last minutes that this version took."""
    time_share: float | None = None
    """An estimate: of the time that its calls take, that of the compiled ones, as if calls of one
    region and shape all took alike."""
    on_gpu: bool = False
    """Whether that time is the GPU's."""
    nothing: bool = False
    """Its agents reported that compilation was requested and nothing was compiled."""

    @property
    def share(self) -> float | None:
        """Compiled calls among those looked at; zero where nothing was compiled; None where no
        agent looked."""
        if self.known:
            return self.compiled / self.known
        return 0.0 if self.nothing and self.calls else None

    @property
    def recent(self) -> float | None:
        """The same of late."""
        return self.recent_compiled / self.recent_known if self.recent_known else None

    @property
    def used(self) -> float | None:
        """How much of the budget is used up, 1 is all of it; None without a budget or with too few
        calls."""
        if self.budget is None or self.share is None or self.known < ENOUGH:
            return None
        return (1 - self.share) / (1 - self.budget)

    @property
    def burn(self) -> float | None:
        """How many times faster than the budget allows it burns of late."""
        if self.budget is None or self.recent is None or self.recent_known < ENOUGH:
            return None
        return (1 - self.recent) / (1 - self.budget)

    @property
    def broken(self) -> bool:
        """Whether the budget is used up or burns too fast."""
        return (self.used or 0.0) > 1 or (self.burn or 0.0) > 1

    @property
    def sentence(self) -> str:
        """What there is to say about the budget."""
        if self.budget is None:
            return "no budget set"
        if self.share is None:
            return f"budget {numbers.percent(self.budget)}; no agent could look at a call"
        if self.used is None:
            return (
                f"budget {numbers.percent(self.budget)}; {numbers.number(self.known)} looked-at "
                "calls are too few to hold against it"
            )
        used = (
            f"{numbers.number(_short(self.used))} times used"
            if self.used > 1
            else f"{numbers.percent(self.used)} used"
        )
        told = f"budget {numbers.percent(self.budget)}, {used}"
        if self.burn is not None and self.burn > 1:
            return (
                f"{told}; burning {numbers.number(_short(self.burn))} times as fast as it allows "
                "in the last hour"
            )
        return f"{told}; not burning in the last hour" if self.used > 1 else told

    @property
    def of_time(self) -> str:
        """The same by time; empty where too few calls were timed."""
        if self.time_share is None:
            return ""
        return (
            f"about {numbers.percent(self.time_share)} of their "
            f"{'GPU time' if self.on_gpu else 'time'}"
        )

    @property
    def looked(self) -> str:
        """How much stands behind the share."""
        if self.nothing and self.calls and not self.known:
            return f"of {self.calls:,} calls; compilation was requested, nothing was compiled"
        part = f" ({numbers.percent(self.known / self.calls)})" if self.calls > self.known else ""
        return (
            f"of {self.known:,} looked-at calls, {self.calls:,} in all{part}"
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
    """Adds the version's series up; regions that the caller runs eager on purpose have nothing to
    be compiled."""
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
    """Each series weighs what its calls take, on the GPU where all of them were timed there; None
    where too many were not timed."""
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
