"""Sampler: call sampling of the process. Flushes counts, adapts rates and stops for compilations.

`call_sampling.py` describes the algorithm for one region."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from itertools import chain, pairwise

from compilewatch.recording.buffer_types import UntimedSampling
from compilewatch.recording.call_sampling import SampledBuffer, Sampling, discard_tokens
from compilewatch.recording.untimed_calls import CompileOverlaps, find_untimed_calls

ADAPT_SECONDS = 0.9
UNIFORM_NESTING_SECONDS = 60.0
"""A region is sampled only if, for this time, all of its calls were outermost or all were
nested. An untimed call does not check its nesting."""


class Sampler:
    """Sampling states of the process. Every call is timed during a compilation and until one
    quiet interval has passed."""

    def __init__(self) -> None:
        self.busy_seconds = 0.0
        """Seconds that outermost calls took since the start, without calls that compiled."""
        self.has_sampled = False
        """True once calls of any region were untimed."""
        self._active_samplings: list[Sampling] = []
        self._may_have_untimed = False
        """True if untimed calls may be in progress: from the first sampled region until the next
        compilation."""
        self.overlaps = CompileOverlaps()
        self._is_quiet = False
        self._last_adaptation = time.perf_counter()

    def stop(self) -> None:
        """Has every call of every region timed until one quiet interval has passed."""
        self._is_quiet = False
        active_samplings, self._active_samplings = self._active_samplings, []
        for sampling in active_samplings:
            sampling.stop()

    def on_compile_start(self, seconds: float = 0.0) -> None:
        """Called when a compilation starts, or has ended on this thread unobserved after `seconds`.

        Untimed calls in progress overlap the compilation and have no end hook, so the overlap is
        attributed to them here."""
        self._is_quiet = False
        may_have_untimed, self._may_have_untimed = self._may_have_untimed, False
        if may_have_untimed:
            self.stop()
            self.overlaps.record_start(seconds)

    def flush_counts(self, buffers: Iterable[SampledBuffer]) -> dict[Sampling, list[SampledBuffer]]:
        """Flushes the counts into the buffers. Returns the sampling states with the buffers of
        each."""
        buffers_by_sampling: dict[Sampling, list[SampledBuffer]] = {}
        for buffer in buffers:
            buffers_by_sampling.setdefault(buffer.sampling, []).append(buffer)
        for sampling in buffers_by_sampling:
            sampling.count_tokens()
        calls = find_untimed_calls() if self.has_sampled else {}
        self.overlaps.scan(calls)
        in_progress = Counter(chain.from_iterable(calls.values()))
        for sampling, own_buffers in buffers_by_sampling.items():
            seconds_sum = sampling.flush_counts(own_buffers, in_progress[sampling])
            self.busy_seconds += seconds_sum if own_buffers[0].region.outermost else 0.0
        for inner, outer in chain.from_iterable(map(pairwise, calls.values())):
            _record_nesting(inner, outer)
        return buffers_by_sampling

    def adapt_rate(self, buffers: Iterable[SampledBuffer], compiling: bool) -> None:
        """Adapts the rates about once a second, mostly on the agent's thread."""
        now = time.perf_counter()
        elapsed = now - self._last_adaptation
        if elapsed < ADAPT_SECONDS:
            return
        samplings = self.flush_counts(list(buffers))
        is_quiet = self._is_quiet and not compiling
        self._is_quiet, self._last_adaptation = not compiling, now
        self._active_samplings = [
            sampling
            for sampling, own_buffers in samplings.items()
            if sampling.adapt_rate(
                elapsed, is_quiet and _has_uniform_nesting(sampling, own_buffers, now)
            )
        ]
        self.has_sampled = self.has_sampled or bool(self._active_samplings)
        self._may_have_untimed = self._may_have_untimed or bool(self._active_samplings)
        if not self._is_quiet:
            # A compilation started meanwhile, and saw the list of the previous interval.
            self.stop()
        for sampling in self._active_samplings:
            # The first tokens, or replacements of withdrawn ones. Timed calls draw the next ones.
            sampling.draw_skips()


def _record_nesting(inner: UntimedSampling, outer: UntimedSampling) -> None:
    """Records that an untimed call runs inside another one. Neither call has recorded the
    nesting."""
    if outer.buffer is not None:
        outer.buffer.record_nested_call()
    if not inner.is_nested:
        inner.stop()


def _has_uniform_nesting(sampling: Sampling, buffers: list[SampledBuffer], now: float) -> bool:
    """True if calls of the region may run unrecorded: none contains a watched call, and all are
    nested or all are outermost."""
    if sampling.publish_tokens is discard_tokens:
        return False
    others = [other for other in buffers[0].spec.samplings if other is not sampling]
    return not any(buffer.has_nested_calls for buffer in buffers) and all(
        other.last_call_at < now - UNIFORM_NESTING_SECONDS for other in others
    )
