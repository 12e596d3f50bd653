"""Lines that a library logs, heard by a filter on its logger: no handler is added, and nothing more than before is printed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier

LISTENING = logging.INFO - 1
"""A level that no job sets: what a job sets later is its own and stays."""


class LogLines(logging.Filter):
    """Has `hear` called with each record from INFO on, and lets through what the logger's own level would have let through."""

    def __init__(
        self, name: str, hear: Callable[[logging.LogRecord], None], recorder: Recorder
    ) -> None:
        super().__init__()
        self._hear, self._guard = hear, FaultBarrier(recorder.internal_error)
        self._logger = logging.getLogger(name)
        self._level = self._logger.level
        self._raised = not self._logger.isEnabledFor(logging.INFO)
        self._logger.addFilter(self)
        if self._raised:
            self._logger.setLevel(LISTENING)

    def filter(self, record: logging.LogRecord) -> bool:
        with self._guard:
            self._hear(record)
        return not self._raised or record.levelno >= self._level_of_job()

    def remove(self) -> None:
        """Puts back the level, unless somebody else has changed it meanwhile."""
        self._logger.removeFilter(self)
        if self._raised and self._logger.level == LISTENING:
            self._logger.setLevel(self._level)

    def _level_of_job(self) -> int:
        """The level that would be in force without us."""
        if self._logger.level != LISTENING:
            return self._logger.getEffectiveLevel()
        return self._level or (
            self._logger.parent.getEffectiveLevel() if self._logger.parent else logging.WARNING
        )
