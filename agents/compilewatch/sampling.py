"""Which calls of a very short region are timed: some of them, drawn by chance. Every call is counted all the same."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from itertools import repeat
from operator import length_hint
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compilewatch.lines import Line

SHORT_SECONDS, NOT_SHORT_SECONDS = 0.0003, 0.00045
"""A region whose calls take less on average is sampled, until they take more than the second. Timing a call costs up to 3 us where the
job's own code has driven ours out of the processor's caches, which is a hundredth of the first."""
TIMED_A_SECOND, MOST_EVERY = 250, 128
"""So many calls are timed all the same, and one in so many at least: few calls cost little, and their quantiles need each."""
PACE_SECONDS = 0.9
chance = random.Random().random
"""From 0 to 1; the job's own sequence of random numbers stays as it is."""


_USED_UP: repeat[Any] = repeat(None, 0)
_MOST_BOOKS = 1024


class _Book:
    """Tickets as they were issued; how many of them are left is asked of the iterator itself, so that no call has to count."""

    __slots__ = ("left", "replaced", "tickets")

    def __init__(self, tickets: repeat[Line], left: int) -> None:
        self.tickets, self.left, self.replaced = tickets, left, False

    def used(self) -> int:
        """How many tickets were taken since the last time."""
        before, self.left = self.left, length_hint(self.tickets)
        return before - self.left


class Sampling:
    """The calls of one region that are outermost, or those that are not: how many of them are timed, and how many others there were."""

    __slots__ = ("_books", "_owed", "calls", "epoch", "every", "line", "ratio", "seconds", "tickets", "timed", "undone")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Every call is timed; nothing was counted. Assignments alone, as it runs in a forked child."""
        self.every = 1
        """One call in so many is timed."""
        self.tickets: repeat[Line] | None = None
        """A call that gets one is only counted, and stands under its line while it runs; when there is none left, one is timed. Taking it
        is one step of the interpreter. None while each call is timed."""
        self.undone: list[int] = []
        """Grows by one for each call with a ticket that failed or compiled: it is told elsewhere."""
        self.epoch = 0
        """The recorder's, since tickets are issued: they end with it."""
        self.ratio = 1.0
        """How many calls stood for each that was timed, of late."""
        self.line: Line | None = None
        """The line that was timed last."""
        self._books: list[_Book] = []
        self._owed = 0
        self.calls, self.timed, self.seconds = 0, 0, 0.0

    def draw(self) -> None:
        """Decides how many calls follow that are not timed. With chance in it: calls that alternate between two kinds would else be
        timed all of one kind."""
        # Where nobody came to settle for long, each call is timed until somebody does.
        if self.every > 1 and self.line is not None and len(self._books) < _MOST_BOOKS:
            self.issue(int(chance() * (2 * self.every - 1)))
        else:
            self.tickets = None

    def issue(self, count: int) -> None:
        """So many calls are only counted before the next one is timed."""
        assert self.line is not None
        tickets = repeat(self.line, count)
        self._books.append(_Book(tickets, count))
        self.tickets = tickets

    def stop(self) -> None:
        """Each call is timed from now on."""
        self.every, self.tickets = 1, None

    def take(self) -> int:
        """How many calls were counted and not timed since the last time; for one thread at a time."""
        books, undone = self._books[:], len(self.undone)
        del self.undone[:undone]
        self._owed += sum([book.used() for book in books]) - undone
        # A thread may be about to take a ticket that was replaced just now: such ones are looked at once more.
        kept = [book for book in books if book.left and not book.replaced]
        for book in kept:
            book.replaced = book.tickets is not self.tickets
        self._books[: len(books)] = kept
        # What is undone may have been counted in the window before.
        taken = max(0, self._owed)
        self._owed -= taken
        return taken

    def settle(self, lines: list[Line]) -> float:
        """Gives the calls that were not timed to the lines of the region, in proportion to what was timed of each meanwhile: their
        buckets are an estimate, their sum is exact. Answers the seconds of all steady calls, estimated likewise."""
        counts = [line.timed_since() for line in lines]
        timed, untimed = sum(count for count, _ in counts), self.take()
        for line, (count, _) in zip(lines, counts, strict=True):
            self.line = line if count else self.line
        self.calls += timed + untimed
        self.timed += timed
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

    def pace(self, elapsed: float, quiet: bool, epoch: int) -> bool:
        """Decides what part of the calls is timed from now on, by those of the last stretch; True if it is not all of them."""
        usual, calls = self.seconds / self.timed if self.timed else None, self.calls
        self.ratio = calls / self.timed if self.timed else self.ratio
        self.calls, self.timed, self.seconds = 0, 0, 0.0
        limit = SHORT_SECONDS if self.every == 1 else NOT_SHORT_SECONDS
        every = min(MOST_EVERY, int(calls / elapsed / TIMED_A_SECOND))
        if not quiet or usual is None or usual > limit or every < 2:
            self.stop()
            return False
        self.every, self.epoch = every, epoch
        if self.tickets is None:
            self.tickets = _USED_UP
        return True


class Sampler:
    """The samplings of a process. While something compiles, and until all was quiet for a while after it, every call is timed."""

    def __init__(self) -> None:
        self.busy = 0.0
        """Seconds that outermost calls took since the start, without those that compiled."""
        self._at_work: list[Sampling] = []
        self._disturbed = (0.0, 0, 0.0)
        self._quiet = False
        self._paced = time.perf_counter()

    def disturb(self, seconds: float = 0.0) -> None:
        """A compilation begins; or one is over in this thread of which nothing was heard before, and took so long."""
        self._quiet = False
        if self._at_work:
            self._disturbed = time.perf_counter(), threading.get_ident(), seconds
            at_work, self._at_work = self._at_work, []
            for sampling in at_work:
                sampling.stop()

    def since_disturbed(self) -> float:
        """The seconds of a call of this thread that is over, was not to be timed, and met a compilation: those since that began."""
        at, thread, before = self._disturbed
        return time.perf_counter() - at + (before if thread == threading.get_ident() else 0.0)

    def settle(self, lines: Iterable[Line]) -> list[Sampling]:
        """Has all that was counted in the lines' regions; answers their samplings."""
        found: dict[Sampling, list[Line]] = {}
        for line in lines:
            found.setdefault(line.sampling, []).append(line)
        for sampling, mine in found.items():
            spent = sampling.settle(mine)
            self.busy += spent if mine[0].region.outermost else 0.0
        return list(found)

    def pace(self, lines: Iterable[Line], compiling: bool, epoch: int) -> None:
        """About once a second, on the agent's thread."""
        now = time.perf_counter()
        elapsed = now - self._paced
        if elapsed < PACE_SECONDS:
            return
        samplings = self.settle(lines)
        quiet, self._quiet, self._paced = self._quiet and not compiling, not compiling, now
        self._at_work = [sampling for sampling in samplings if sampling.pace(elapsed, quiet, epoch)]
        if not self._quiet:
            self.disturb()  # a compilation began meanwhile, and saw the list as it was before
