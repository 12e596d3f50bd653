"""Operator fallbacks: operators without an inductor kernel, which run the eager kernel.

torch reports them in a log that is off by default."""

from __future__ import annotations

import logging

from compilewatch.recording.recorder import Recorder
from compilewatch.sources import Capability, Source
from compilewatch.sources.dynamo.scrubber import normalize
from compilewatch.sources.log_filter import LogListener

LOGGER = "torch._inductor.graph.__perf_hints"
_MESSAGE = "Using FallbackKernel: %s"


class OperatorFallbacks(Source):
    """Reads torch's log of performance hints; the log prints no additional lines."""

    name = "fallbacks"
    module = "torch._inductor.graph"

    def __init__(self) -> None:
        self._lines: LogListener | None = None

    def install(self, recorder: Recorder) -> Capability:
        if self._lines is None:
            self._recorder = recorder
            self._lines = LogListener(LOGGER, self._on_record, recorder)
        return "partly", "a graph served by the cache does not repeat its fallbacks"

    def uninstall(self) -> None:
        if self._lines is not None:
            self._lines.remove()
            self._lines = None

    def _on_record(self, record: logging.LogRecord) -> None:
        if record.msg == _MESSAGE and isinstance(record.args, tuple):
            self._recorder.record_finding(
                "fallback", normalize(f"no inductor kernel for {record.args[0]}")
            )
