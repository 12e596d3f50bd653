"""What the hot path writes to: one line per region, shape bucket and nesting, made of lists that only grow at their end."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from compilewatch.recording.call_sampling import Sampling
from compilewatch.recording.runtime_names import AHEAD, EAGER, TORCH_COMPILE, usual_runtime
from compilewatch.recording.warm_up import NONE_LEFT, Durations, Ending, WarmUp
from compilewatch.wire.clip import clip
from compilewatch.wire.messages import EAGER_CAUSES, Region
from compilewatch.wire.sketch import Sketch

MAX_BUCKETS = 16
LOOK_SECONDS, PAUSE_SECONDS = 0.02, 0.0002
LONG = 1 << 15
"""Calls that one line may hold unbinned; beyond, callers bin the excess, should the agent's thread not come by."""
TOO_LONG = 1 << 17
"""Calls of which one line holds the times at most, about 4 MiB, where callers come faster than anybody can bin."""
NESTED = (
    128  # the bit of a line's key that says "inside another region"; below it stands the bucket
)
CHUNK = 1024
"""Calls binned at a time: so long, about 0.2 ms, nobody else in the process runs Python code."""
MOST_CHUNKS = 32
"""That one caller bins at a time: more than what comes in 5 ms of one processor, and soon over; it would else bin what all other threads
call meanwhile, for seconds."""
OTHER = "other"
MAX_SPECS = 1_000
KINDS = ("plain", "compiled", "partial", "unknown")
"""Calls of which nothing was looked up, and what was looked up of the others."""


class Probe(Protocol):
    """Times some calls of a line on the GPU; `begin` answers None for a call that is not sampled. None of it ever raises."""

    def begin(self) -> Any | None: ...

    def end(self, pair: Any) -> None: ...

    def drop(self, pair: Any) -> None: ...


@dataclass(slots=True, eq=False)
class Spec:
    """What `watch` was told about a callable."""

    name: str
    mode: str = "default"
    runtime: str = ""
    items: Callable[..., float] | None = None
    bucket: Callable[..., object] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """What torch.compile was told, reported once by each instance."""
    buckets: set[str] = field(default_factory=set)
    eager: str = ""
    """Why every call runs eager, where that was certain when it was wrapped: compiling was switched off for it."""
    faults: dict[str, int] = field(default_factory=dict)
    """How often the job's own `items` and `bucket` failed."""
    judged: bool = False
    """Its calls say what runs it: a callable that never meets compiled code is eager. A block is no callable of its own."""
    ran: str = ""
    """The runtime that its calls were found to run in."""
    samplings: tuple[Sampling, Sampling] = field(
        default_factory=lambda: (Sampling(), Sampling(nested=True))
    )
    """Of its calls that are outermost, and of those that are not."""
    target: Callable[[], Any] | None = None
    """Answers what was watched last under it, as long as that lives."""
    module: Callable[[], Any] | None = None
    """The same without what `torch.compile` puts around a module: a framework may keep that alone."""
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    """What wraps its plain callables, once there is one."""

    def admit(self, bucket: str) -> str:
        """The bucket itself while there is room for it, else `other`."""
        if bucket in self.buckets or len(self.buckets) < MAX_BUCKETS:
            self.buckets.add(bucket)
            return bucket
        return OTHER

    def runtime_in(self, region: Region) -> str:
        """The runtime of a window's calls; compiled code that was met once decides for good."""
        if self.runtime:
            return self.runtime
        if region.compiled or region.partial or region.eager_by:
            self.ran = TORCH_COMPILE
        elif self.judged and not self.ran and region.unknown:
            self.ran = EAGER
        return self.ran or usual_runtime()


def named(value: object) -> str:
    """What the job gave as a name, as text that can be sent; an object that fails to say itself goes by its type."""
    try:
        return clip(str(value))
    except Exception:  # noqa: BLE001 - the job's own object
        return clip(f"<{type(value).__name__}>")


class Specs:
    """By number, for as long as the process lives: wrappers hold the number."""

    def __init__(self) -> None:
        self.all = [Spec(OTHER)]
        self.finite = os.environ.get("COMPILEWATCH_FINITE") == "1"
        """Whether answers are looked through for NaN: until the settings are read, what the environment says."""
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, spec: Spec) -> int:
        """The same for the same spec; that of `other`, 0, when there are too many."""
        key = (
            spec.name,
            spec.mode,
            spec.runtime,
            spec.eager,
            id(spec.items),
            id(spec.bucket),
            spec.judged,
            *sorted(spec.options.items()),
        )
        if key not in self._numbers and len(self.all) < MAX_SPECS:
            # Appended first, then looked up: two threads that register at once must not get one number.
            self.all.append(spec)
            self._numbers[key] = self.all.index(spec)
        return self._numbers.get(key, 0)

    def told_by(self, key: Any) -> tuple[int, bool, str]:
        """A spec's number, whether inside another region, and the bucket: the key is a whole number with a power-of-two bucket in its low
        bits, or a tuple (base, nested, bucket)."""
        if isinstance(key, tuple):
            return key[0] >> 8, bool(key[1]), str(key[2])
        code = key & (NESTED - 1)
        return key >> 8, bool(key & NESTED), f"2^{code - 1}" if code else ""


class Line:
    """Raw seconds by what the call turned out to be. Appending and cutting off the front are each one step of the interpreter,
    so a call is counted once without a lock. Callers append; `drain` alone removes."""

    __slots__ = (
        "cause",
        "compiled",
        "eager",
        "errors",
        "gpu",
        "holds",
        "idle",
        "items",
        "kept",
        "partial",
        "plain",
        "probe",
        "region",
        "sampling",
        "seconds",
        "served",
        "settled",
        "spec",
        "stalled",
        "timed",
        "unknown",
        "warm_up",
        "warmed",
        "warmup",
    )

    plain: Durations
    compiled: Durations
    partial: Durations
    unknown: Durations
    idle: Durations

    def __init__(self, spec: Spec, region: Region, warm_up: WarmUp = NONE_LEFT) -> None:
        self.spec = spec
        self.region = region
        self.kept: dict[str, list[float]] = {kind: [] for kind in KINDS}
        """The seconds by kind, of which `drain` takes; callers append where `aim` points."""
        self.warmup: list[float] = []
        self.stalled: list[float] = []
        self.errors: list[int] = []
        self.gpu: list[float] = []
        self.items: list[float] = []
        self.eager: dict[str, list[float]] = {cause: [] for cause in EAGER_CAUSES}
        self.cause = ""
        """Why a call without a guard hit runs eager, where that is known."""
        self.probe: Probe | None = None
        # Lines of regions without end end in one, whose calls are of no one region: those are all timed.
        self.sampling = Sampling() if region.name == OTHER else spec.samplings[not region.outermost]
        self.timed, self.seconds = 0, 0.0
        self.holds = False
        """Whether another watched call was made in one of its calls."""
        self.served = False
        self.warmed = False
        self.settled = False
        """Whether a call ran without compiling after one that compiled."""
        self.warm_up = warm_up
        warm_up.add(self)

    def aim(self) -> None:
        """Points callers at the lists. As long as the region warms up, calls that would end its warm-up go by way of what sees to that:
        those that met compiled code; after a call that compiled also those of which that is not known, or where no code is expected."""
        kept, warm_up = self.kept, self.warm_up
        plain, compiled, partial, unknown = (kept[kind] for kind in KINDS)
        idle = (
            compiled
            if self.spec.runtime in AHEAD
            else self.eager[self.cause]
            if self.cause
            else unknown
        )
        ends = not warm_up.over
        settles = ends and warm_up.disturbed
        awaited = self.spec.runtime == TORCH_COMPILE and not self.spec.eager
        self.compiled = Ending(warm_up, compiled) if ends else compiled
        self.partial = Ending(warm_up, partial) if ends else partial
        self.plain = Ending(warm_up, plain) if settles else plain
        self.unknown = Ending(warm_up, unknown) if settles and not awaited else unknown
        self.idle = Ending(warm_up, idle) if settles and (self.cause or not awaited) else idle

    def point(self, cause: str) -> None:
        """From now on, calls that hit no guard count by this cause, or as unknown where it is empty."""
        self.cause = cause
        self.aim()

    def looked_up(self, lookups: tuple[int, int] | None) -> Durations:
        """Where a call goes by the hits and misses of torch's lookups in it; None: which of them were its own is not known."""
        if lookups is None:
            return self.unknown
        hits, misses = lookups
        return self.idle if not hits else self.partial if misses else self.compiled

    def waited(self, start: float) -> list[float]:
        """Where a call goes that began then, and compiled or waited for a compilation."""
        if start >= self.warm_up.ended_at:
            return self.stalled
        self.warm_up.disturb()
        return self.warmup

    def holds_another(self) -> None:
        """A watched call is made inside one of its calls: from now on each of them must say that it is under way."""
        if not self.holds:
            self.holds = True
            self.sampling.stop()

    def waiting(self) -> int:
        """How many calls wait to be binned."""
        timed = (*self.kept.values(), *self.eager.values(), self.warmup, self.stalled)
        return sum(map(len, timed)) + len(self.errors)

    def shorten(self) -> None:
        """Bins some of what is too much; for a caller, which has other things to do."""
        for _ in range(MOST_CHUNKS):
            if self.waiting() > LONG:
                self.drain()

    def _thin(self) -> None:
        """Where far too many wait, forgets how long the oldest of them took: they count like calls that were not timed."""
        plain = self.kept["plain"]
        excess = len(plain) - TOO_LONG
        if excess > 0:
            del plain[: excess + LONG]
            self.sampling.undone.append(-(excess + LONG))

    def steps(self) -> range:
        """As many steps of `drain` as what waits now takes."""
        return range(1 + self.waiting() // CHUNK)

    def drain(self) -> int:
        """Bins the newest `CHUNK` calls of each kind into the open region and answers how many they were; one thread at a time."""
        region, before = self.region, self.region.calls
        self._thin()
        if self.spec.eager:
            for certain in self.kept.values():
                self.eager[self.spec.eager] += take(certain, CHUNK)
        elif self.spec.runtime in AHEAD:
            self.kept["compiled"] += take(self.kept["plain"], CHUNK)
        steady = plain = take(self.kept["plain"], CHUNK)
        for kind in KINDS[1:]:
            calls = self.kept[kind]
            if calls:
                taken = take(calls, CHUNK)
                setattr(region, kind, getattr(region, kind) + len(taken))
                steady = steady + taken
        for cause, calls in self.eager.items():
            if calls:
                taken = take(calls, CHUNK)
                region.eager_by[cause] = region.eager_by.get(cause, 0) + len(taken)
                steady = steady + taken
        warmup, stalled, errors = (
            take(self.warmup, CHUNK),
            take(self.stalled, CHUNK),
            len(take(self.errors, CHUNK)),
        )
        region.sampled += len(steady) - len(plain)
        # What a sketch holds is counted in the same step: a report can hold no more stalled calls than calls.
        region.calls += len(steady) + len(warmup) + len(stalled) + errors
        region.errors += errors
        region.latency = _add(region.latency, steady)
        self.timed += len(steady)
        self.seconds += sum(steady)
        region.warmup = _add(region.warmup, warmup)
        region.stalled = _add(region.stalled, stalled)
        region.gpu = _add(region.gpu, take(self.gpu, CHUNK))
        self.served = self.served or bool(steady)
        self.settled = (
            self.settled
            or bool(region.compiled or region.partial)
            or (self.warmed and bool(steady))
        )
        self.warmed = self.warmed or bool(warmup)
        if self.items:
            region.items = (region.items or 0.0) + sum(take(self.items, CHUNK))
        return region.calls - before

    def emptied(self) -> Line:
        """The line itself, all that waited binned."""
        for _ in self.steps():
            self.drain()
        return self

    def timed_since(self) -> tuple[int, float]:
        """How many steady calls were timed since the last time, and their seconds together."""
        found = self.timed, self.seconds
        self.timed, self.seconds = 0, 0.0
        return found

    def count_untimed(self, calls: int) -> None:
        """Counts calls that ran without compiling and were not timed."""
        region, cause = self.region, self.spec.eager
        region.calls += calls
        if self.spec.runtime in AHEAD:
            region.sampled += calls
            region.compiled += calls
        if cause and calls:
            region.sampled += calls
            region.eager_by[cause] = region.eager_by.get(cause, 0) + calls

    def close(self) -> Region | None:
        """The region of the window that ends with what was binned, or None if nobody called; a new one is open from here on."""
        closed = self.region
        if not closed.calls and closed.gpu is None:
            return None
        self.region = blank(closed)
        closed.runtime = self.spec.runtime_in(closed)
        if closed.runtime != TORCH_COMPILE:
            # Where nothing can have been compiled by torch, it is no question whether a call was.
            closed.sampled, closed.unknown = closed.sampled - closed.unknown, 0
        return closed


def blank(region: Region) -> Region:
    """A region with the same key and no calls."""
    return Region(
        region.name,
        0,
        region.bucket,
        region.mode,
        region.runtime,
        region.outermost,
        stalled=Sketch(),
    )


def take(values: list[Any], most: int | None = None) -> list[Any]:
    """Removes and returns what the list holds now, or the newest `most` of it; what is appended meanwhile stays."""
    # From the end: to take some from the front would move all the rest, and a list that grew long would never be short again.
    end = len(values)
    begin = 0 if most is None else max(0, end - most)
    taken = values[begin:end]
    del values[begin:end]
    return taken


def _add(sketch: Sketch | None, seconds: list[float]) -> Sketch | None:
    if not seconds:
        return sketch
    sketch = sketch or Sketch()
    # A clock that goes backwards or fails makes no duration: such a call counts, and is in no sketch.
    sketch.add_many(seconds if min(seconds) >= 0.0 else [one for one in seconds if one >= 0.0])
    return sketch


NOWHERE = Line(Spec(""), Region("", 0))
"""Takes the calls that the agent fails to place; nobody reads it."""
