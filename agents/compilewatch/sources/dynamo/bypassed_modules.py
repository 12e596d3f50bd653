"""Watched modules that torch compiles although nothing enters their wrapper: a framework unwraps the module and calls its methods."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.recording.series_buffer import Spec
from compilewatch.sources.dynamo.compilation_metrics import Frame

TEXT = "torch compiles {method}, and nothing calls the watched module `{region}` itself: its calls are not counted"
_COMPARISONS = str(Path(__file__).resolve().parents[2] / "numerics")


class Unentered:
    """Notes compilations of watched modules; the end of the window reports those whose wrapper was not entered until then."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._waiting: list[tuple[Spec, str, str]] = []
        self._reported: set[str] = set()

    def note(self, compiling: Mapping[str, Any], frame: Frame) -> None:
        """The frame was compiled on this thread."""
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
                    and not self._recorder.entered(spec)
                    and not _compares()
                ):
                    self._reported.add(spec.name)
                    self._waiting.append(
                        (spec, f"{type(module).__name__}.{frame.name}", frame.where)
                    )
                    self._recorder.report_at_close("unentered", self._report)

    def _report(self) -> None:
        while self._waiting:
            spec, method, where = self._waiting.pop()
            if not self._recorder.entered(spec):
                self._recorder.finding(
                    "wrapper_not_entered", TEXT.format(method=method, region=spec.name), where
                )


def _is_method(code: Any, kind: type) -> bool:
    """Whether the code is that of a method of the class."""
    method = inspect.getattr_static(kind, getattr(code, "co_name", ""), None)
    return (
        code is not None
        and getattr(inspect.unwrap(method) if callable(method) else method, "__code__", None)
        is code
    )


def _compares() -> bool:
    """Whether a golden batch or a shadow call compiles here, which goes past the wrapper on purpose."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_COMPARISONS):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
