"""Region spec: the arguments of `watch` for a region, and the registry of specs by number."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compilewatch.recording.call_sampling import Sampling
from compilewatch.recording.runtime_names import EAGER, TORCH_COMPILE, usual_runtime
from compilewatch.wire.clip import clip
from compilewatch.wire.messages import Region

MAX_BUCKETS = 16
MAX_SPECS = 1_000
NESTED_BIT = 128
"""Bit of a buffer key for "nested in another region". The bits below hold the bucket."""
OTHER = "other"


@dataclass(slots=True, eq=False)
class RegionSpec:
    """Region spec: the arguments of `watch` and known facts about the callable."""

    name: str
    mode: str = "default"
    runtime: str = ""
    items: Callable[..., float] | None = None
    bucket: Callable[..., object] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Options of `torch.compile`, reported once by each instance."""
    buckets: set[str] = field(default_factory=set)
    eager_cause: str = ""
    """Why every call runs eager, if known when the callable was wrapped: compiling was disabled
    for it."""
    fault_counts: dict[str, int] = field(default_factory=dict)
    """Number of errors of the job's own `items` and `bucket`."""
    shows_runtime: bool = False
    """True if calls determine the runtime: a callable that never runs compiled code is eager. A
    block is no callable."""
    observed_runtime: str = ""
    """The runtime that calls were found to run in."""
    samplings: tuple[Sampling, Sampling] = field(
        default_factory=lambda: (Sampling(), Sampling(nested=True))
    )
    """Sampling state of outermost calls and of nested calls."""
    target: Callable[[], Any] | None = None
    """Returns the callable that was watched last under this spec, while it is alive."""
    module: Callable[[], Any] | None = None
    """The same without the wrapper of `torch.compile` around a module. A framework may keep the
    inner module only."""
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    """Wraps plain callables of the region. Set at the first one."""

    def admit_bucket(self, bucket: str) -> str:
        """Returns the bucket, or `other` if the region has too many buckets."""
        if bucket in self.buckets or len(self.buckets) < MAX_BUCKETS:
            self.buckets.add(bucket)
            return bucket
        return OTHER

    def resolve_runtime(self, region: Region) -> str:
        """The runtime of a window's calls. One call of compiled code decides permanently."""
        if self.runtime:
            return self.runtime
        if region.compiled or region.partial or region.eager_by:
            self.observed_runtime = TORCH_COMPILE
        elif self.shows_runtime and not self.observed_runtime and region.unknown:
            self.observed_runtime = EAGER
        return self.observed_runtime or usual_runtime()


def safe_text(value: object) -> str:
    """Converts a name from the job to text that can be sent. Falls back to the type name if
    conversion fails."""
    try:
        return clip(str(value))
    except Exception:  # noqa: BLE001 - an object of the job
        return clip(f"<{type(value).__name__}>")


class SpecRegistry:
    """Specs by number, for the lifetime of the process. Wrappers hold the number."""

    def __init__(self) -> None:
        self.all = [RegionSpec(OTHER)]
        self.check_nan = os.environ.get("COMPILEWATCH_FINITE") == "1"
        """True if results are checked for NaN. Taken from the environment until the settings are
        read."""
        self._numbers: dict[tuple[object, ...], int] = {}

    def register(self, spec: RegionSpec) -> int:
        """Registers the spec. Equal specs have the same number. Too many specs share number 0,
        `other`."""
        key = (
            spec.name,
            spec.mode,
            spec.runtime,
            spec.eager_cause,
            id(spec.items),
            id(spec.bucket),
            spec.shows_runtime,
            *sorted(spec.options.items()),
        )
        if key not in self._numbers and len(self.all) < MAX_SPECS:
            # Append first, look up second: two threads that register at once must not get the same
            # number.
            self.all.append(spec)
            self._numbers[key] = self.all.index(spec)
        return self._numbers.get(key, 0)

    def split_key(self, key: Any) -> tuple[int, bool, str]:
        """Splits a buffer key into the spec's number, the nesting and the bucket.

        A key is an integer with a power-of-two bucket in its low bits, or a tuple (base, nested,
        bucket)."""
        if isinstance(key, tuple):
            return key[0] >> 8, bool(key[1]), str(key[2])
        code = key & (NESTED_BIT - 1)
        return key >> 8, bool(key & NESTED_BIT), f"2^{code - 1}" if code else ""
