"""Bypass detector: finds watched modules that torch compiles although no call enters their wrapper.

A framework may unwrap a module and call its methods directly."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.recording.region_spec import RegionSpec
from compilewatch.sources.dynamo.compilation_metrics import Frame

TEXT = (
    "torch compiles {method}, but nothing calls the watched module `{region}` directly: "
    "calls of `{region}` are not counted"
)
_NUMERICS_FOLDER = str(Path(__file__).resolve().parents[2] / "numerics")


class BypassedModules:
    """Records compilations of watched modules. At the end of the window, reports the modules whose
    wrapper no call has entered."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._candidates: list[tuple[RegionSpec, str, str]] = []
        self._reported: set[str] = set()

    def note(self, compiling: Mapping[str, Any], frame: Frame) -> None:
        """Record that a frame was compiled on this thread."""
        code, specs = compiling.get("code"), self._recorder.specs.all
        modules = [
            module
            for reference, _ in compiling.get("modules", {}).values()
            if (module := reference()) is not None
        ]
        for module in modules:
            if not _is_method(code, type(module)):
                continue
            for spec in [
                spec for spec in list(specs) if spec.module is not None and spec.module() is module
            ]:
                if (
                    spec.name not in self._reported
                    and not self._recorder.has_begun(spec)
                    and not _is_comparison()
                ):
                    self._reported.add(spec.name)
                    self._candidates.append(
                        (spec, f"{type(module).__name__}.{frame.name}", frame.where)
                    )
                    self._recorder.report_at_rotation("unentered", self._report)

    def _report(self) -> None:
        while self._candidates:
            spec, method, where = self._candidates.pop()
            if not self._recorder.has_begun(spec):
                self._recorder.record_finding(
                    "wrapper_not_entered", TEXT.format(method=method, region=spec.name), where
                )


def _is_method(code: Any, kind: type) -> bool:
    """True if the code belongs to a method of the class."""
    method = inspect.getattr_static(kind, getattr(code, "co_name", ""), None)
    return (
        code is not None
        and getattr(inspect.unwrap(method) if callable(method) else method, "__code__", None)
        is code
    )


def _is_comparison() -> bool:
    """True if a golden batch or a shadow call compiles on this thread: both bypass the wrapper."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_NUMERICS_FOLDER):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
