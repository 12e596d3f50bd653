"""What the hot path writes to: one line per region, shape bucket and nesting, made of lists that only grow at their end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from compilewatch.wire.report import EAGER_CAUSES, Region
from compilewatch.wire.sketch import Sketch

MAX_BUCKETS = 16
OTHER = "other"


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

    def admit(self, bucket: str) -> str:
        """The bucket itself while there is room for it, else `other`."""
        if bucket in self.buckets or len(self.buckets) < MAX_BUCKETS:
            self.buckets.add(bucket)
            return bucket
        return OTHER


class Call:
    """What a thread is doing now: the innermost open line, and the guard lookups since the thread began."""

    __slots__ = ("hits", "line", "misses")

    def __init__(self) -> None:
        self.line: Line | None = None
        self.hits = 0
        self.misses = 0


class Line:
    """Raw nanoseconds by what the call turned out to be. Appending and cutting off the front are each one step of the interpreter,
    so a call is counted once without a lock. Callers append; `drain` alone removes."""

    __slots__ = (
        "compiled",
        "eager",
        "errors",
        "gpu",
        "idle",
        "items",
        "partial",
        "plain",
        "probe",
        "region",
        "served",
        "spec",
        "unknown",
        "warmup",
    )

    def __init__(self, spec: Spec, region: Region) -> None:
        self.spec = spec
        self.region = region
        self.plain: list[int] = []
        self.compiled: list[int] = []
        self.partial: list[int] = []
        self.unknown: list[int] = []
        self.warmup: list[int] = []
        self.errors: list[int] = []
        self.gpu: list[float] = []
        self.items: list[float] = []
        self.eager: dict[str, list[int]] = {cause: [] for cause in EAGER_CAUSES}
        self.idle = self.unknown  # where a call without a guard hit goes: `latch` points it at a cause
        self.probe: Probe | None = None
        self.served = False

    def waiting(self) -> int:
        """How many calls wait to be drained."""
        return len(self.plain) + len(self.compiled) + len(self.partial) + len(self.unknown) + sum(map(len, self.eager.values()))

    def drain(self) -> None:
        """Bins what has been appended so far into the open region; one thread at a time."""
        region = self.region
        compiled, partial, unknown, plain = take(self.compiled), take(self.partial), take(self.unknown), take(self.plain)
        steady = compiled + partial + unknown + plain
        region.compiled += len(compiled)
        region.partial += len(partial)
        region.unknown += len(unknown)
        region.sampled += len(steady) - len(plain)
        for cause, calls in self.eager.items():
            if calls:
                eager = take(calls)
                region.eager_by[cause] = region.eager_by.get(cause, 0) + len(eager)
                region.sampled += len(eager)
                steady += eager
        warmup, errors = take(self.warmup), len(take(self.errors))
        region.calls += len(steady) + len(warmup) + errors
        region.errors += errors
        region.latency = _add(region.latency, [ns / 1e9 for ns in steady])
        region.warmup = _add(region.warmup, [ns / 1e9 for ns in warmup])
        region.gpu = _add(region.gpu, take(self.gpu))
        self.served = self.served or bool(steady)
        if self.items:
            region.items = (region.items or 0.0) + sum(take(self.items))

    def close(self) -> Region | None:
        """The drained region of the window that ends, or None if nobody called; a new one is open from here on."""
        self.drain()
        closed = self.region
        if not closed.calls and closed.gpu is None:
            return None
        self.region = blank(closed)
        return closed


def blank(region: Region) -> Region:
    """A region with the same key and no calls."""
    return Region(region.name, 0, region.bucket, region.mode, region.runtime, region.outermost)


def take(values: list[Any]) -> list[Any]:
    """Removes and returns what the list holds now; what is appended meanwhile stays."""
    taken = values[:]
    del values[: len(taken)]
    return taken


def _add(sketch: Sketch | None, seconds: list[float]) -> Sketch | None:
    if not seconds:
        return sketch
    sketch = sketch or Sketch()
    sketch.add_many(seconds)
    return sketch
