"""Log filter: observes the records of a library's logger.

A filter adds no handler and prints no additional records."""

from __future__ import annotations

import logging
from collections.abc import Callable

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier

AGENT_LEVEL = logging.INFO - 1
"""Level that no job sets. The filter distinguishes the agent's level from a level that the job sets
later, and keeps the level of the job."""


class LogListener(logging.Filter):
    """Calls `hear` with each record of level INFO or higher. Passes on only the records that the
    logger's original level accepts."""

    def __init__(
        self, name: str, hear: Callable[[logging.LogRecord], None], recorder: Recorder
    ) -> None:
        super().__init__()
        self._hear, self._barrier = hear, FaultBarrier(recorder.record_internal_error)
        self._logger = logging.getLogger(name)
        self._level = self._logger.level
        self._is_level_lowered = not self._logger.isEnabledFor(logging.INFO)
        self._logger.addFilter(self)
        if self._is_level_lowered:
            self._logger.setLevel(AGENT_LEVEL)

    def filter(self, record: logging.LogRecord) -> bool:
        with self._barrier:
            self._hear(record)
        return not self._is_level_lowered or record.levelno >= self._level_of_job()

    def remove(self) -> None:
        """Remove the filter. Restore the level unless other code has changed it since."""
        self._logger.removeFilter(self)
        if self._is_level_lowered and self._logger.level == AGENT_LEVEL:
            self._logger.setLevel(self._level)

    def _level_of_job(self) -> int:
        """Effective level of the logger without the agent."""
        if self._logger.level != AGENT_LEVEL:
            return self._logger.getEffectiveLevel()
        return self._level or (
            self._logger.parent.getEffectiveLevel() if self._logger.parent else logging.WARNING
        )
