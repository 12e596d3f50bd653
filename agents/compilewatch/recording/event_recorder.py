"""Event recorder: findings, facts and gauges of the open window."""

from __future__ import annotations

import time
from typing import Any

from compilewatch.recording.aggregate import EventLog
from compilewatch.wire.messages import Fact, Finding, Gauges


class EventRecorder:
    """Appends events to the log of the open window, from any thread."""

    _log: EventLog
    _gauges: Gauges

    @property
    def truncated_event_count(self) -> int:
        """Events whose samples were cut since the start."""
        return self._log.truncated_count

    def record_finding(
        self,
        kind: str,
        text: str,
        where: str = "",
        count: int = 1,
        seconds: float = 0.0,
        **values: Any,
    ) -> None:
        """Records a graph break, a failed guard, a fallback and so on. Equal findings and their
        seconds are summed.

        `values`: what a guard received, by the fields of `Finding`."""
        self._log.add_finding(Finding(kind, text, where, count, seconds, **values))

    def record_fact(self, kind: str, data: dict[str, Any] | None = None) -> None:
        """Records a confirmed fact at this moment."""
        self._log.add_fact(Fact(kind, self.event_time(), data or {}))

    def count_fact(self, kind: str, data: dict[str, Any]) -> None:
        """Records a fact that may repeat: one fact per window, with its number in `count`."""
        self._log.count_fact(Fact(kind, self.event_time(), data))

    def event_time(self) -> float:
        """The time of an event that is recorded now, in Unix seconds."""
        return time.time()

    def set_gauge(self, name: str, value: Any) -> None:
        """Sets the latest value of a field of `Gauges`, including `devices`."""
        setattr(self._gauges, name, value)
