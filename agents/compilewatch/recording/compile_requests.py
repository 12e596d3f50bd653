"""Registry of compile requests: what the job asks torch to compile, and whether a call of it ever met compiled code."""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import suppress
from types import FunctionType, MethodType
from typing import Any, NamedTuple, Protocol

from compilewatch.recording.reachable_callables import reached
from compilewatch.recording.runtime_names import EAGER, TORCH_COMPILE
from compilewatch.recording.series_buffer import Line
from compilewatch.wire.messages import Compile, Region

ENOUGH = 50
"""Calls without compiled code that make it certain."""
_ON_PURPOSE = ("limit", "stance", "disabled")
"""Causes of eager calls that say by themselves what to do, or that something was compiled before."""
FAILED = "each compilation failed, and the error was swallowed: by suppress_errors, or by code that falls back to eager"
SKIPPED = "torch skips the function, and finds no graph in it"
DROPPED = (
    "its calls do not go through what torch.compile made: the result was dropped (`self = torch.compile(self)`), another object took its "
    "place after `.compile()`, or torch leaves the class out (`nn.Sequential(...).compile()`)"
)
TEXT = "compile was requested for {region}, and no call met compiled code: {why}"


class Findings(Protocol):
    """Where what was found goes: the recorder."""

    def fact(self, kind: str, data: dict[str, Any] | None = None) -> None: ...

    def finding(self, kind: str, text: str, where: str = "") -> None: ...

    def internal_error(self, error: BaseException) -> None: ...


class Request(NamedTuple):
    """A callable that the job asks torch to compile."""

    target: Any
    """A weak reference; to the object where it is a method of one."""
    kind: type
    code: Any
    where: str

    def is_for(self, thing: Any) -> bool:
        """Whether the thing is what was meant; an object of its class where it is gone."""
        target = self.target()
        if type(thing) is FunctionType:
            return self.code is not None and thing.__code__ is self.code
        return thing is target or (
            target is None and self.code is None and type(thing) is self.kind
        )


class CompiledNothing(NamedTuple):
    """A region whose compilation was requested and that compiled nothing."""

    region: str
    calls: int
    why: str
    where: str


class Requests:
    """Requests, and by region what came of them. Requests come from any thread; the rest is for the agent's own."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque(maxlen=256)
        self._made: set[str] = set()
        self._failed: dict[str, str] = {}
        self._calls: Counter[str] = Counter()
        self._reported: set[str] = set()

    def add(self, target: Any, where: str) -> None:
        """The line at `where` asks torch to compile the target."""
        owner = target.__self__ if isinstance(target, MethodType) else target
        code = target.__code__ if isinstance(target, FunctionType) else None
        with suppress(TypeError):  # an object that allows no weak reference cannot be found later
            self._requests.append(Request(weakref.ref(owner), type(owner), code, where))

    def note_compilation(self, regions: Iterable[str], compile_: Compile) -> None:
        """A compilation inside the regions is over."""
        for region in regions:
            if compile_.outcome == "ok" and compile_.kind != "empty":
                self._made.add(region)
            elif compile_.outcome in ("raised", "suppressed"):
                self._failed[region] = (
                    f"{compile_.file}:{compile_.line} in {compile_.frame}" if compile_.file else ""
                )

    def report(self, recorder: Findings, closed: Iterable[tuple[Line, Region | None]]) -> None:
        """Reports regions that compiled nothing; never raises."""
        try:
            for one in self.find(closed):
                recorder.finding(
                    "compiled_nothing", TEXT.format(region=one.region, why=one.why), one.where
                )
                recorder.fact(
                    "compiled_nothing", {"region": one.region, "calls": one.calls, "why": one.why}
                )
        except Exception as error:  # noqa: BLE001 - the job's own objects are looked at, and the window is closed all the same
            recorder.internal_error(error)

    def find(self, closed: Iterable[tuple[Line, Region | None]]) -> list[CompiledNothing]:
        """Regions that certainly compiled nothing; each once."""
        found = []
        for line, region in closed:
            if region is None or region.name in self._reported or region.name in self._made:
                continue
            if region.compiled or region.partial:
                self._made.add(region.name)
                continue
            self._calls[region.name] += _calls_without_code(region)
            if self._calls[region.name] >= ENOUGH:
                try:
                    why, where = self._why(line, region)
                except Exception:
                    self._reported.add(region.name)  # it would fail in each window
                    raise
                if why:
                    self._reported.add(region.name)
                    found.append(CompiledNothing(region.name, self._calls[region.name], why, where))
        return found

    def _why(self, line: Line, region: Region) -> tuple[str, str]:
        """Why nothing was compiled, and where it was requested; empty where it was not requested."""
        if region.name in self._failed:
            return FAILED, self._failed[region.name]
        if line.spec.runtime == TORCH_COMPILE:
            return SKIPPED, ""
        target = None if line.spec.target is None else line.spec.target()
        if target is None or not self._requests:
            return "", ""
        for thing in reached(target):
            for request in list(self._requests):
                if request.is_for(thing):
                    return DROPPED, request.where
        return "", ""


def _calls_without_code(region: Region) -> int:
    """Calls of which it is known that they met none, or that a compilation ended in them."""
    if region.runtime == EAGER:
        return region.calls
    waited = sum(sketch.count for sketch in (region.warmup, region.stalled) if sketch is not None)
    return waited + sum(
        count for cause, count in region.eager_by.items() if cause not in _ON_PURPOSE
    )
