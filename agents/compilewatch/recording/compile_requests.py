"""Registry of compile requests: what the job asks torch to compile, and whether its calls ran
compiled code."""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import suppress
from types import FunctionType, MethodType
from typing import Any, NamedTuple, Protocol

from compilewatch.recording.reachable_callables import iterate_reachable
from compilewatch.recording.runtime_names import EAGER, TORCH_COMPILE
from compilewatch.recording.series_buffer import SeriesBuffer
from compilewatch.wire.messages import Compile, Region

MIN_UNCOMPILED_CALLS = 50
"""Calls without compiled code that confirm the finding."""
_EXPLAINED_CAUSES = ("limit", "stance", "disabled")
"""Eager causes with a remedy of their own, or after an earlier compilation."""
WHY_FAILED = (
    "each compilation failed, and the error was swallowed: by suppress_errors, or by code that "
    "falls back to eager"
)
WHY_SKIPPED = "torch skips the function, and finds no graph in it"
WHY_DROPPED = (
    "its calls do not go through what torch.compile made: the result was dropped "
    "(`self = torch.compile(self)`), another object took its place after `.compile()`, or torch "
    "leaves the class out (`nn.Sequential(...).compile()`)"
)
FINDING_TEXT = "compile was requested for {region}, and no call met compiled code: {why}"


class FindingSink(Protocol):
    """Receiver of findings: the recorder."""

    def record_fact(self, kind: str, data: dict[str, Any] | None = None) -> None: ...

    def record_finding(self, kind: str, text: str, where: str = "") -> None: ...

    def record_internal_error(self, error: BaseException) -> None: ...


class CompileRequest(NamedTuple):
    """A callable that the job asks torch to compile."""

    target: Any
    """A weak reference; for a bound method, to its object."""
    kind: type
    code: Any
    where: str

    def is_for(self, candidate: Any) -> bool:
        """True if `candidate` is the requested callable. After the requested object is gone, an
        object of its class matches."""
        target = self.target()
        if type(candidate) is FunctionType:
            return self.code is not None and candidate.__code__ is self.code
        return candidate is target or (
            target is None and self.code is None and type(candidate) is self.kind
        )


class UncompiledRegion(NamedTuple):
    """A region whose compilation was requested and that compiled nothing."""

    region: str
    calls: int
    why: str
    where: str


class CompileRequests:
    """Compile requests, and the result of each by region.

    Requests come from any thread. Every other method runs on the agent's thread."""

    def __init__(self) -> None:
        self._requests: deque[CompileRequest] = deque(maxlen=256)
        self._compiled_regions: set[str] = set()
        self._failures: dict[str, str] = {}
        self._call_counts: Counter[str] = Counter()
        self._reported_regions: set[str] = set()

    def add(self, target: Any, where: str) -> None:
        """Records that the line at `where` asks torch to compile the target."""
        owner = target.__self__ if isinstance(target, MethodType) else target
        code = target.__code__ if isinstance(target, FunctionType) else None
        with suppress(TypeError):  # an object that allows no weak reference cannot be found later
            self._requests.append(CompileRequest(weakref.ref(owner), type(owner), code, where))

    def record_compile(self, regions: Iterable[str], compile_: Compile) -> None:
        """Records a finished compilation inside the regions."""
        for region in regions:
            if compile_.outcome == "ok" and compile_.kind != "empty":
                self._compiled_regions.add(region)
            elif compile_.outcome in ("raised", "suppressed"):
                self._failures[region] = (
                    f"{compile_.file}:{compile_.line} in {compile_.frame}" if compile_.file else ""
                )

    def report_uncompiled(
        self, recorder: FindingSink, windows: Iterable[tuple[SeriesBuffer, Region | None]]
    ) -> None:
        """Reports regions that compiled nothing. Never raises."""
        try:
            for uncompiled in self.find_uncompiled(windows):
                recorder.record_finding(
                    "compiled_nothing",
                    FINDING_TEXT.format(region=uncompiled.region, why=uncompiled.why),
                    uncompiled.where,
                )
                recorder.record_fact(
                    "compiled_nothing",
                    {"region": uncompiled.region, "calls": uncompiled.calls, "why": uncompiled.why},
                )
        except Exception as error:  # noqa: BLE001 - reads objects of the job
            recorder.record_internal_error(error)

    def find_uncompiled(
        self, windows: Iterable[tuple[SeriesBuffer, Region | None]]
    ) -> list[UncompiledRegion]:
        """Returns the regions that compiled nothing, confirmed by `MIN_UNCOMPILED_CALLS` calls.
        Returns each region once."""
        uncompiled = []
        for buffer, region in windows:
            if (
                region is None
                or region.name in self._reported_regions
                or region.name in self._compiled_regions
            ):
                continue
            if region.compiled or region.partial:
                self._compiled_regions.add(region.name)
                continue
            self._call_counts[region.name] += _count_uncompiled(region)
            if self._call_counts[region.name] >= MIN_UNCOMPILED_CALLS:
                try:
                    why, where = self._explain(buffer, region)
                except Exception:
                    # The failure would repeat in each window.
                    self._reported_regions.add(region.name)
                    raise
                if why:
                    self._reported_regions.add(region.name)
                    uncompiled.append(
                        UncompiledRegion(region.name, self._call_counts[region.name], why, where)
                    )
        return uncompiled

    def _explain(self, buffer: SeriesBuffer, region: Region) -> tuple[str, str]:
        """Returns why nothing was compiled and where it was requested. Empty if it was not
        requested."""
        if region.name in self._failures:
            return WHY_FAILED, self._failures[region.name]
        if buffer.spec.runtime == TORCH_COMPILE:
            return WHY_SKIPPED, ""
        target = None if buffer.spec.target is None else buffer.spec.target()
        if target is None or not self._requests:
            return "", ""
        for candidate in iterate_reachable(target):
            for request in list(self._requests):
                if request.is_for(candidate):
                    return WHY_DROPPED, request.where
        return "", ""


def _count_uncompiled(region: Region) -> int:
    """Calls that are known to have run no compiled code, or in which a compilation ended."""
    if region.runtime == EAGER:
        return region.calls
    wait_count = sum(
        sketch.count for sketch in (region.warmup, region.stalled) if sketch is not None
    )
    return wait_count + sum(
        count for cause, count in region.eager_by.items() if cause not in _EXPLAINED_CAUSES
    )
