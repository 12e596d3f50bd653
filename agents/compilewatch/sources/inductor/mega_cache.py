"""Mega-cache: the compile caches of one process, saved as bytes and loaded into another process.

The agent observes the job's own calls of torch."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from compilewatch.lazy_modules import CACHE_LOOKUPS, require
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.torch_internals import (
    LOAD_ARTIFACTS,
    SAVE_ARTIFACTS,
    TorchName,
    problems_of,
)
from compilewatch.sources import Capability, Source


class MegaCache(Source):
    """Wraps the two functions of `torch.compiler`; loaded entries appear later as hits."""

    name = "mega_cache"
    module = "torch.compiler"

    def __init__(self) -> None:
        self._bound: dict[TorchName, tuple[Callable[..., Any], Callable[..., Any]]] = {}

    def install(self, recorder: Recorder) -> Capability:
        for name, report in (
            (SAVE_ARTIFACTS, self._report_save),
            (LOAD_ARTIFACTS, self._report_load),
        ):
            if name not in self._bound and not name.problem():
                self._bind(recorder, name, name.find(), report)
        problems = "; ".join(problems_of(SAVE_ARTIFACTS, LOAD_ARTIFACTS))
        return (("partly" if self._bound else "no"), problems) if problems else ("yes", "")

    def uninstall(self) -> None:
        bound, self._bound = self._bound, {}
        for name, (call, previous) in bound.items():
            if name.find() is call:
                name.put(previous)

    def _bind(
        self,
        recorder: Recorder,
        name: TorchName,
        previous: Callable[..., Any],
        report: Callable[..., None],
    ) -> None:
        barrier = FaultBarrier(recorder.record_internal_error)

        @functools.wraps(previous)
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            result = previous(*args, **kwargs)
            if name in self._bound:
                with barrier:
                    report(recorder, time.perf_counter() - start, result, *args, **kwargs)
            return result

        self._bound[name] = (call, previous)
        name.put(call)

    def _report_save(self, recorder: Recorder, seconds: float, result: Any) -> None:
        if result is not None:
            packed, info = result
            _mark(recorder, "mega-cache saved", seconds, len(packed), info)

    def _report_load(
        self, recorder: Recorder, seconds: float, info: Any, serialized_artifacts: bytes
    ) -> None:
        if info is None:
            recorder.record_fact(
                "mark",
                {
                    "name": "mega-cache could not be loaded",
                    "seconds": seconds,
                    "bytes": len(serialized_artifacts),
                },
            )
            return
        _mark(recorder, "mega-cache loaded", seconds, len(serialized_artifacts), info)
        # Imported late: every torch process installs this source, and few processes load a mega-
        # cache.
        lookups = require(CACHE_LOOKUPS).CacheLookups
        lookups.of(recorder).add_loaded_keys(
            str(key) for keys in info.artifacts.values() for key in keys
        )


def _mark(recorder: Recorder, name: str, seconds: float, size: int, info: Any) -> None:
    counts = {str(kind): len(keys) for kind, keys in info.artifacts.items()}
    recorder.record_fact(
        "mark", {"name": name, "seconds": seconds, "bytes": size, "artifacts": counts}
    )
