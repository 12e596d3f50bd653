"""Operators that inductor has no kernel for and hands back to the eager one: told to a log that is off by default."""

from __future__ import annotations

import logging

from compilewatch.guard import Guard
from compilewatch.recorder import Recorder
from compilewatch.sources import Answer, Source
from compilewatch.sources.texts import normal

LOGGER = "torch._inductor.graph.__perf_hints"
_MESSAGE = "Using FallbackKernel: %s"


class Fallbacks(Source):
    """Opens torch's log of performance hints for itself alone: nothing is printed that would not have been printed without it."""

    name = "fallbacks"
    module = "torch._inductor.graph"

    def __init__(self) -> None:
        self._filter: _Filter | None = None

    def install(self, recorder: Recorder) -> Answer:
        logger = logging.getLogger(LOGGER)
        if self._filter is None:
            self._filter = _Filter(recorder, logger)
            logger.addFilter(self._filter)
            if not logger.isEnabledFor(logging.INFO):
                logger.setLevel(logging.INFO)
        return "partly", "a graph served by the cache does not repeat its fallbacks"

    def uninstall(self) -> None:
        if self._filter is not None:
            self._filter.remove()
            self._filter = None


class _Filter(logging.Filter):
    """Reads the hints and lets through only what the logger's own level would have let through."""

    def __init__(self, recorder: Recorder, logger: logging.Logger) -> None:
        super().__init__()
        self._recorder = recorder
        self._guard = Guard(recorder)
        self._logger = logger
        self._level = logger.level
        self._effective = logger.getEffectiveLevel()

    def filter(self, record: logging.LogRecord) -> bool:
        with self._guard:
            if record.msg == _MESSAGE and isinstance(record.args, tuple):
                self._recorder.finding("fallback", normal(f"no inductor kernel for {record.args[0]}"))
        return record.levelno >= self._effective

    def remove(self) -> None:
        self._logger.removeFilter(self)
        if self._logger.level == logging.INFO:
            self._logger.setLevel(self._level)
