"""CUDA graphs that torch skipped: its log says why, its counter says how often, and some skips leave no trace."""

from __future__ import annotations

import logging
import re
import sys

from compilewatch.guard import Guard
from compilewatch.recorder import Recorder
from compilewatch.sources import Answer, Source
from compilewatch.sources.places import user_place
from compilewatch.sources.texts import normal

LOGGER = "torch._inductor.cudagraph_utils.__cudagraphs"
_SKIP, _SIZES = "skipping cudagraphs", "distinct sizes"
_STACK_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
_SILENT = "skipped without a reason"


class CudaGraphs(Source):
    """Reads both, so that a skip that is logged twice counts once and one that is only counted is still told."""

    name = "cuda_graph_skips"
    module = "torch._inductor.cudagraph_utils"

    def __init__(self) -> None:
        self._handler: _Handler | None = None
        self._seen = 0

    def install(self, recorder: Recorder) -> Answer:
        if self._handler is None:
            self._seen = skips_counted()
            self._handler = _Handler(recorder)
            logging.getLogger(LOGGER).addHandler(self._handler)
        return "partly", "torch skips some graphs without counting them"

    def poll(self, recorder: Recorder) -> None:
        if self._handler is None:
            return
        now, told = skips_counted(), self._handler.take()
        silent = now - (self._seen if now >= self._seen else 0) - told
        self._seen = now
        if silent > 0:
            recorder.finding("cudagraph_skip", _SILENT, "", silent)

    def uninstall(self) -> None:
        if self._handler is not None:
            logging.getLogger(LOGGER).removeHandler(self._handler)
            self._handler = None


class _Handler(logging.Handler):
    """Torch logs a skip just before it counts it: two lines at one count are one skip."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(logging.WARNING)
        self._recorder = recorder
        self._guard = Guard(recorder)
        self._last = -1
        self._told = 0

    def take(self) -> int:
        told, self._told = self._told, 0
        return told

    def emit(self, record: logging.LogRecord) -> None:
        with self._guard:
            text = record.getMessage()
            if _SIZES in text:
                self._recorder.finding("cudagraph_skip", normal(text))
            elif _SKIP in text:
                counted = skips_counted()
                if counted != self._last:
                    self._last = counted
                    self._told += 1
                    self._recorder.finding("cudagraph_skip", *skip_read(text))


def skip_read(text: str) -> tuple[str, str]:
    """The reason, and the innermost of the user's lines that torch quotes under it; the quoted code itself stays here."""
    reason, _, stack = text.partition("Found from")
    lines = [(match["file"], int(match["line"]), match["function"]) for match in _STACK_LINE.finditer(stack)]
    place = user_place(reversed(lines))
    return normal(reason), str(place or "")


def skips_counted() -> int:
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return int((counters.get("inductor") or {}).get("cudagraph_skips", 0))
