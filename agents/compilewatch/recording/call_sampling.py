"""Which calls of a very short region are timed: some of them, drawn by chance. Every call is counted all the same."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from operator import length_hint
from typing import Protocol

from compilewatch.recording.buffer_types import Buffer, UntimedSampling
from compilewatch.recording.untimed_calls import Met, counted_calls
from compilewatch.wire.messages import Region

SHORT_SECONDS, NOT_SHORT_SECONDS = 0.002, 0.003
"""A region whose calls take less on average is sampled, until they take more than the second. In a decode step of a language model on an
H100 (`tests/gpu/llm_pairs.py`) a timed call costs 10 to 20 us, 1 % of the first: the job's own code has driven ours out of the processor's
caches."""
TIMED_A_SECOND, MOST_EVERY = 40, 512
"""So many calls are timed all the same, and one in so many at least: few calls cost little, and their quantiles need each."""
SLOWEST_FALL = 4
"""By how much the calls that stand for one timed call become fewer in a second at most."""
PACE_SECONDS = 0.9
ALIKE_SECONDS = 60.0
"""A region is sampled that was for so long called in other regions alone, or in none alone: a call that is only counted does not ask."""
chance = random.Random().random
"""From 0 to 1; the job's own sequence of random numbers stays as it is."""


_MOST_BOOKS = 8 * 1024
"""Enough for two million calls between two settlements, of which there is one a second."""


NONE_LEFT: Iterator[Sampling] = iter(())
"""Like all tickets the iterator of a tuple: the interpreter steps through it without calling anything, which is the quickest behind a
step that has driven all else out of the processor's caches."""


def _to_nobody(tickets: Iterator[Sampling]) -> None:
    """No callable takes any: blocks, coroutines and what has options are timed each."""


class _Book:
    """Tickets as they were issued; how many of them are left is asked of the iterator itself, so that no call has to count."""

    __slots__ = ("given", "left", "replaced", "tickets")

    def __init__(self, tickets: Iterator[Sampling], left: int) -> None:
        self.tickets, self.left, self.given, self.replaced = tickets, left, False, False

    def used(self) -> int:
        """How many tickets were taken since the last time."""
        before, self.left = self.left, length_hint(self.tickets)
        return before - self.left


class SampledBuffer(Buffer, Protocol):
    """A buffer whose calls are timed by chance."""

    @property
    def region(self) -> Region:
        """What was counted."""

    @property
    def sampling(self) -> Sampling:
        """What decides which."""

    @property
    def spec(self) -> SampledSpec:
        """The callable of the region."""


class SampledSpec(Protocol):
    """A callable that is watched, whose calls may be counted in several buffers."""

    @property
    def samplings(self) -> Sequence[Sampling]:
        """For calls outside of others, and for those inside."""


class Sampling:
    """The calls of one region that are outermost, or those that are not: how many of them are timed, and how many others there were."""

    __slots__ = (
        "_books",
        "_owed",
        "_short",
        "base",
        "called",
        "calls",
        "every",
        "hand_out",
        "line",
        "nested",
        "ratio",
        "seconds",
        "ticket",
        "tickets",
        "timed",
        "undone",
    )

    def __init__(self, nested: bool = False) -> None:
        self.nested = nested
        self.hand_out: Callable[[Iterator[Sampling]], None] = _to_nobody
        """Gives tickets to the callables of the region."""
        self.base = 0
        """What the keys of its lines are without the bucket."""
        self.reset()

    def reset(self) -> None:
        """Every call is timed; nothing was counted. Assignments alone, as it runs in a forked child."""
        self.every = 1
        """One call in so many is timed."""
        self.tickets = NONE_LEFT
        """A call that gets one is only counted; when there is none left, one is timed. Taking it is one step of the interpreter."""
        self.hand_out(self.tickets)
        self.undone: list[int] = []
        """1 for each call with a ticket that failed or met a compilation, and is told elsewhere; -1 for one that is not told after all."""
        self.called = -math.inf
        """When calls of it were last found, by `time.perf_counter`."""
        self.ratio = 1.0
        """How many calls stood for each that was timed, of late."""
        self.line: SampledBuffer | None = None
        """The line that was timed last."""
        self._books: list[_Book] = []
        self._owed, self._short = 0, False
        self.calls, self.timed, self.seconds = 0, 0, 0.0

    def draw(self) -> None:
        """Decides how many calls follow that are not timed. With chance in it: calls that alternate between two kinds would else be
        timed all of one kind."""
        # Where nobody came to settle for long, each call is timed until somebody does.
        if self.every > 1 and self.line is not None and len(self._books) < _MOST_BOOKS:
            self.issue(int(chance() * (2 * self.every - 1)))

    def issue(self, count: int) -> None:
        """So many calls are only counted before the next one is timed."""
        tickets = iter((self,) * count)
        book = _Book(tickets, count)
        self._books.append(book)
        self.tickets = tickets
        self.hand_out(tickets)  # other threads may hand out theirs before
        book.given = True
        if self.every == 1:
            self.stop()  # it was told to between two steps of this one

    def stop(self) -> None:
        """Each call is timed from now on."""
        self.every, self.tickets = 1, NONE_LEFT
        self.hand_out(NONE_LEFT)

    def count(self) -> None:
        """Sees how many tickets were taken since the last time; for one thread at a time, as is what follows."""
        books = self._books[:]
        self._owed += sum([book.used() for book in books])
        # A thread may be about to take a ticket that was replaced just now: such ones are looked at once more.
        kept = [
            book
            for book in books
            if book.left and (not book.replaced or book.tickets is self.tickets)
        ]
        for book in kept:
            book.replaced = book.given and book.tickets is not self.tickets
        self._books[: len(books)] = kept

    def take(self, held: int = 0) -> int:
        """How many calls with a ticket are over and told nowhere else, since the last time; so many are still under way."""
        undone = self.undone[:]
        del self.undone[: len(undone)]
        self._owed -= sum(undone)
        taken = max(0, self._owed - held)
        self._owed -= taken
        # Less than none were counted where a call began before a fork or another start: nobody will ever count it.
        short, self._short = self._short, self._owed < 0
        if short and self._short:
            self._owed, self._short = 0, False
        return taken

    def settle(self, lines: list[SampledBuffer], held: int = 0) -> float:
        """Gives the calls that were not timed, but for so many that are under way, to the lines of the region, in proportion to what was
        timed of each meanwhile: their buckets are an estimate, their sum is exact. Answers the seconds of all steady calls, estimated
        likewise."""
        counts = [line.timed_since() for line in lines]
        timed, untimed = sum(count for count, _ in counts), self.take(held)
        for line, (count, _) in zip(lines, counts, strict=True):
            self.line = line if count else self.line
        self.calls += timed + untimed
        self.timed += timed
        self.called = time.perf_counter() if timed or untimed else self.called
        spent = sum(seconds for _, seconds in counts)
        self.seconds += spent
        if not timed and untimed:
            (self.line or lines[0]).count_untimed(untimed)
            return 0.0
        given = seen = 0
        for line, (count, _) in zip(lines, counts, strict=True):
            seen += count
            share = untimed * seen // timed - given if timed else 0
            given += share
            line.count_untimed(share)
        return spent * (1 + untimed / timed) if timed else 0.0

    def pace(self, elapsed: float, quiet: bool) -> bool:
        """Decides what part of the calls is timed from now on, by those of the last stretch; True if it is not all of them. A stretch
        without calls changes nothing, and one with fewer calls only so much: calls may come in bursts, as the
        tokens of one answer do, and the second in which the rate of a burst is found would cost more than the rest of it."""
        if quiet and not self.calls and self.every > 1:
            return True
        usual, calls = self.seconds / self.timed if self.timed else None, self.calls
        self.ratio = calls / self.timed if self.timed else self.ratio
        self.calls, self.timed, self.seconds = 0, 0, 0.0
        limit = SHORT_SECONDS if self.every == 1 else NOT_SHORT_SECONDS
        every = min(
            MOST_EVERY, max(int(calls / elapsed / TIMED_A_SECOND), self.every // SLOWEST_FALL)
        )
        if not quiet or usual is None or usual > limit or every < 2:
            self.stop()
            return False
        self.every = every
        return True


class Sampler:
    """The samplings of a process. While something compiles, and until all was quiet for a while after it, every call is timed."""

    def __init__(self) -> None:
        self.busy = 0.0
        """Seconds that outermost calls took since the start, without those that compiled."""
        self.ever = False
        """Whether calls of any region were ever only counted."""
        self._at_work: list[Sampling] = []
        self._loose = False
        """Whether there may be calls under way that are only counted: since some region was sampled, until something compiles."""
        self.met = Met()
        self._quiet = False
        self._paced = time.perf_counter()

    def stop(self) -> None:
        """Each call of each region is timed from now on, until all was quiet for a while."""
        self._quiet = False
        at_work, self._at_work = self._at_work, []
        for sampling in at_work:
            sampling.stop()

    def disturb(self, seconds: float = 0.0) -> None:
        """A compilation begins; or one is over in this thread of which nothing was heard before, and took so long. Calls under way
        compile or wait for it; those that are not timed nobody asks when they end: they are told with what it took of them."""
        self._quiet = False
        loose, self._loose = self._loose, False
        if loose:
            self.stop()
            self.met.begin(seconds)

    def settle(self, lines: Iterable[SampledBuffer]) -> dict[Sampling, list[SampledBuffer]]:
        """Has all that was counted in the lines' regions; answers their samplings, and the lines of each."""
        found: dict[Sampling, list[SampledBuffer]] = {}
        for line in lines:
            found.setdefault(line.sampling, []).append(line)
        for sampling in found:
            sampling.count()
        calls = counted_calls() if self.ever else {}
        self.met.look(calls)
        held = Counter(chain.from_iterable(calls.values()))
        for sampling, mine in found.items():
            spent = sampling.settle(mine, held[sampling])
            self.busy += spent if mine[0].region.outermost else 0.0
        for inner, outer in chain.from_iterable(map(pairwise, calls.values())):
            _nested(inner, outer)
        return found

    def pace(self, lines: Iterable[SampledBuffer], compiling: bool) -> None:
        """About once a second, mostly on the agent's thread."""
        now = time.perf_counter()
        elapsed = now - self._paced
        if elapsed < PACE_SECONDS:
            return
        samplings = self.settle(list(lines))
        quiet, self._quiet, self._paced = self._quiet and not compiling, not compiling, now
        self._at_work = [
            sampling
            for sampling, mine in samplings.items()
            if sampling.pace(elapsed, quiet and _alike(sampling, mine, now))
        ]
        self.ever = self.ever or bool(self._at_work)
        self._loose = self._loose or bool(self._at_work)
        if not self._quiet:
            self.stop()  # a compilation began meanwhile, and saw the list as it was before
        for sampling in self._at_work:
            sampling.draw()  # the first tickets, or some in place of those that were taken back; timed calls draw those that follow


def _nested(inner: UntimedSampling, outer: UntimedSampling) -> None:
    """A counted call was found inside another one, which neither of them noticed."""
    if outer.line is not None:
        outer.line.holds_another()
    if not inner.nested:
        inner.stop()


def _alike(sampling: Sampling, lines: list[SampledBuffer], now: float) -> bool:
    """Whether the calls need not say that they are under way: no watched call is made in them, and they are all made in others or none."""
    if sampling.hand_out is _to_nobody:
        return False
    others = [other for other in lines[0].spec.samplings if other is not sampling]
    return not any(line.holds for line in lines) and all(
        other.called < now - ALIKE_SECONDS for other in others
    )
