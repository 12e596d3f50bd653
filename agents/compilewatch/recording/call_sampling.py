"""Adaptive call sampling: a skip counter decides which calls of a very short region are timed.
Every call is counted.

Algorithm: 1-in-N sampling with random skips. After each timed call, `draw_skips` picks a skip
count, uniform from 0 to 2 * (N - 1). The mean skip is N - 1. The random count prevents aliasing:
with a fixed count, a region that alternates between two kinds of calls would have one kind timed
only. About once a second, `adapt_rate` sets N from the observed call rate, to time about 40 calls a
second and at least 1 in 512.

Skip tokens implement the counter without a shared integer. A batch of n tokens is a tuple iterator
over n references to the `Sampling`. `next` on a tuple iterator is one step of the interpreter.
Under the GIL, each token therefore goes to one call, without a lock. `length_hint` reports how many
tokens are left.

Invariants. Calls append and take; one thread at a time counts (`Recorder._collect_lock`). The
number of calls is exact: untimed calls = tokens taken - corrections - calls in progress. Their
split over shape buckets is an estimate, in proportion to the timed calls. While anything compiles,
and until one quiet interval has passed, every call is timed.

Cost: an untimed call takes one token. A timed call costs 10 to 20 us in a cold cache;
`tests/bench/bench_watch.py` and `tests/gpu/llm_pairs.py` measure both. Source: the skip counter
of sampling profilers; the heap profiler of tcmalloc draws exponential skips, here the range is
bounded."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from operator import length_hint
from typing import Protocol

from compilewatch.recording.buffer_types import Buffer
from compilewatch.wire.messages import Region

SAMPLE_BELOW_SECONDS, SAMPLE_UP_TO_SECONDS = 0.002, 0.003
"""Sampling starts below the first mean duration of a call and stops above the second.

A timed call costs 10 to 20 us in a decode step of a language model on an H100
(`tests/gpu/llm_pairs.py`), 1% of the first limit. The job's own code has evicted the agent's
code from the processor's caches."""
TIMED_CALLS_PER_SECOND, MAX_CALLS_PER_TIMED = 40, 512
"""Timed calls per second, and the maximum number of calls per timed call. A region with few
calls costs little, and its quantiles need each call."""
MAX_RATE_DROP = 4
"""Maximum factor by which the calls per timed call can drop in one second."""
draw_uniform = random.Random().random
"""Uniform random number in [0, 1). The job's own random state stays unchanged."""


_MAX_BATCHES = 8 * 1024
"""Enough for two million calls between two flushes. One flush a second is usual."""


NO_TOKENS: Iterator[Sampling] = iter(())
"""No skip tokens. Token iterators are tuple iterators: the interpreter steps through a tuple
without a call, which is fastest when the caches are cold."""


def discard_tokens(tokens: Iterator[Sampling]) -> None:
    """Discards tokens. Blocks, coroutines and callables with options have every call timed."""


class _TokenBatch:
    """A batch of issued tokens. The iterator itself knows how many are left, so no call has to
    count."""

    __slots__ = ("is_published", "is_replaced", "remaining", "tokens")

    def __init__(self, tokens: Iterator[Sampling], remaining: int) -> None:
        self.tokens, self.remaining = tokens, remaining
        self.is_published, self.is_replaced = False, False

    def count_taken(self) -> int:
        """Returns how many tokens were taken since the last call of this method."""
        previous, self.remaining = self.remaining, length_hint(self.tokens)
        return previous - self.remaining


class SampledBuffer(Buffer, Protocol):
    """A buffer whose calls are sampled."""

    @property
    def region(self) -> Region:
        """The counts of the open window."""

    @property
    def sampling(self) -> Sampling:
        """The sampling state that selects calls of this buffer."""

    @property
    def spec(self) -> SampledSpec:
        """The spec of the region."""


class SampledSpec(Protocol):
    """A watched region, whose calls may be counted in several buffers."""

    @property
    def samplings(self) -> Sequence[Sampling]:
        """Sampling state of outermost calls and of nested calls."""


class Sampling:
    """Sampling state of one region, for its outermost calls or for its nested calls."""

    __slots__ = (
        "_batches",
        "_uncounted",
        "_was_negative",
        "base_key",
        "buffer",
        "call_count",
        "calls_per_timed",
        "corrections",
        "is_nested",
        "last_call_at",
        "observed_calls_per_timed",
        "publish_tokens",
        "skip_tokens",
        "timed_count",
        "timed_seconds",
    )

    def __init__(self, nested: bool = False) -> None:
        self.is_nested = nested
        self.publish_tokens: Callable[[Iterator[Sampling]], None] = discard_tokens
        """Publishes tokens to the callables of the region."""
        self.base_key = 0
        """Key of the region's buffers without the bucket."""
        self.reset()

    def reset(self) -> None:
        """Has every call timed and clears the counts. Consists of assignments only, because it
        runs in a forked child."""
        self.calls_per_timed = 1
        """Calls per timed call."""
        self.skip_tokens = NO_TOKENS
        """A call that takes a token is counted only. Without a token, a call is timed. Taking a
        token is one step of the interpreter."""
        self.publish_tokens(self.skip_tokens)
        self.corrections: list[int] = []
        """Corrections: 1 for each call with a token that failed or overlapped a compilation and
        is counted elsewhere; -1 if such a call is not counted elsewhere after all."""
        self.last_call_at = -math.inf
        """When calls were last found, by `time.perf_counter`."""
        self.observed_calls_per_timed = 1.0
        """Calls per timed call in the last interval."""
        self.buffer: SampledBuffer | None = None
        """The buffer of the last timed call."""
        self._batches: list[_TokenBatch] = []
        self._uncounted, self._was_negative = 0, False
        self.call_count, self.timed_count, self.timed_seconds = 0, 0, 0.0

    def draw_skips(self) -> None:
        """Draws how many calls are skipped before the next timed call.

        The count is random. Otherwise, calls that alternate between two kinds would have one
        kind timed only."""
        # Without a flush for a long time, each call is timed until the next flush.
        if (
            self.calls_per_timed > 1
            and self.buffer is not None
            and len(self._batches) < _MAX_BATCHES
        ):
            self.issue_tokens(int(draw_uniform() * (2 * self.calls_per_timed - 1)))

    def issue_tokens(self, count: int) -> None:
        """Issues tokens: `count` calls are only counted before the next timed call."""
        tokens = iter((self,) * count)
        batch = _TokenBatch(tokens, count)
        self._batches.append(batch)
        self.skip_tokens = tokens
        self.publish_tokens(tokens)  # another thread may publish its tokens first
        batch.is_published = True
        if self.calls_per_timed == 1:
            self.stop()  # `stop` ran between two steps of this method

    def stop(self) -> None:
        """Has every call timed from now on."""
        self.calls_per_timed, self.skip_tokens = 1, NO_TOKENS
        self.publish_tokens(NO_TOKENS)

    def count_tokens(self) -> None:
        """Counts the tokens taken since the last call. This method and the following run on one
        thread at a time."""
        batches = self._batches[:]
        self._uncounted += sum([batch.count_taken() for batch in batches])
        # A thread may be about to take a token of a replaced batch. Such a batch is checked once
        # more.
        live_batches = [
            batch
            for batch in batches
            if batch.remaining and (not batch.is_replaced or batch.tokens is self.skip_tokens)
        ]
        for batch in live_batches:
            batch.is_replaced = batch.is_published and batch.tokens is not self.skip_tokens
        self._batches[: len(batches)] = live_batches

    def take_untimed(self, in_progress: int = 0) -> int:
        """Returns the untimed calls that ended since the last call and are not counted elsewhere.

        `in_progress` untimed calls have not ended."""
        corrections = self.corrections[:]
        del self.corrections[: len(corrections)]
        self._uncounted -= sum(corrections)
        taken = max(0, self._uncounted - in_progress)
        self._uncounted -= taken
        # A negative count comes from a call that began before a fork or restart. Such a call is
        # never counted.
        was_negative, self._was_negative = self._was_negative, self._uncounted < 0
        if was_negative and self._was_negative:
            self._uncounted, self._was_negative = 0, False
        return taken

    def flush_counts(self, buffers: list[SampledBuffer], in_progress: int = 0) -> float:
        """Flushes the untimed calls, except those in progress, to the buffers of the region.

        Each buffer gets a share in proportion to its timed calls. The bucket of an untimed call
        is an estimate; the sum is exact. Returns the estimated seconds of all steady calls."""
        counts = [buffer.pop_timed_totals() for buffer in buffers]
        timed, untimed = sum(count for count, _ in counts), self.take_untimed(in_progress)
        for buffer, (count, _) in zip(buffers, counts, strict=True):
            self.buffer = buffer if count else self.buffer
        self.call_count += timed + untimed
        self.timed_count += timed
        self.last_call_at = time.perf_counter() if timed or untimed else self.last_call_at
        seconds_sum = sum(seconds for _, seconds in counts)
        self.timed_seconds += seconds_sum
        if not timed and untimed:
            (self.buffer or buffers[0]).count_untimed(untimed)
            return 0.0
        assigned_count = cumulative = 0
        for buffer, (count, _) in zip(buffers, counts, strict=True):
            cumulative += count
            share = untimed * cumulative // timed - assigned_count if timed else 0
            assigned_count += share
            buffer.count_untimed(share)
        return seconds_sum * (1 + untimed / timed) if timed else 0.0

    def adapt_rate(self, elapsed: float, is_quiet: bool) -> bool:
        """Adapts the rate to the calls of the last interval. Returns False if every call is timed.

        An interval without calls changes nothing. An interval with fewer calls lowers the rate
        by a bounded factor: calls can come in bursts, as the tokens of one answer do. The second
        that finds the rate of a burst would otherwise cost more than the rest of the burst."""
        if is_quiet and not self.call_count and self.calls_per_timed > 1:
            return True
        mean_seconds, calls = (
            self.timed_seconds / self.timed_count if self.timed_count else None,
            self.call_count,
        )
        self.observed_calls_per_timed = (
            calls / self.timed_count if self.timed_count else self.observed_calls_per_timed
        )
        self.call_count, self.timed_count, self.timed_seconds = 0, 0, 0.0
        limit = SAMPLE_BELOW_SECONDS if self.calls_per_timed == 1 else SAMPLE_UP_TO_SECONDS
        every = min(
            MAX_CALLS_PER_TIMED,
            max(
                int(calls / elapsed / TIMED_CALLS_PER_SECOND), self.calls_per_timed // MAX_RATE_DROP
            ),
        )
        if not is_quiet or mean_seconds is None or mean_seconds > limit or every < 2:
            self.stop()
            return False
        self.calls_per_timed = every
        return True
