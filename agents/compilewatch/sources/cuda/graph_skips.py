"""Skipped CUDA graphs: the log of torch has the reasons, its counter the number.

For a partitioned graph the reason is read from the compiled graph."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.torch_internals import COUNTERS, PARTITIONS
from compilewatch.sources import Capability, Source
from compilewatch.sources.dynamo.compilation_metrics import frame_of
from compilewatch.sources.dynamo.scrubber import normalize
from compilewatch.sources.dynamo.user_frames import find_user_place, read_compiling_locals

LOGGER = "torch._inductor.cudagraph_utils.__cudagraphs"
_SKIPS = ("skipping cudagraph", "disabling cudagraph")
_SIZES = re.compile(r"(\d+) distinct sizes")
_ENDS = re.compile(r"Found from| on cudagraph node |input stack trace:")
_STACK_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
_UNLOGGED = "skipped without a reason"


class CudaGraphs(Source):
    """Merges log and counter: a skip logged twice counts once, an unlogged skip is reported."""

    name = "cuda_graph_skips"
    module = "torch._inductor.cudagraph_utils"

    def __init__(self) -> None:
        self._handler: _Handler | None = None
        self._last_count = 0

    def install(self, recorder: Recorder) -> Capability:
        if self._handler is None:
            self._last_count = count_skips()
            self._handler = _Handler(recorder)
            logging.getLogger(LOGGER).addHandler(self._handler)
        return "partly", "torch skips some graphs without counting them"

    def poll(self, recorder: Recorder) -> None:
        if self._handler is None:
            return
        now, logged = count_skips(), self._handler.take()
        unlogged = now - (self._last_count if now >= self._last_count else 0) - logged
        self._last_count = now
        if unlogged > 0:
            recorder.record_finding("cudagraph_skip", _UNLOGGED, "", unlogged)

    def uninstall(self) -> None:
        if self._handler is not None:
            logging.getLogger(LOGGER).removeHandler(self._handler)
            self._handler = None


class CudaGraphPartitions(Source):
    """Partitioned graphs: torch skips one without a recordable part, without log or counter."""

    name = "cuda_graph_partitions"
    module = "torch._inductor.output_code"

    def __init__(self) -> None:
        self._bound: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def install(self, recorder: Recorder) -> Capability:
        if PARTITIONS.problem():
            return "no", f"no {PARTITIONS.lost_capability}: {PARTITIONS.problem()}"
        previous, barrier = PARTITIONS.find(), FaultBarrier(recorder.record_internal_error)

        @functools.wraps(previous)
        def partition(example_inputs: Any, compiled_graph: Any, *rest: Any, **named: Any) -> Any:
            result = previous(example_inputs, compiled_graph, *rest, **named)
            if self._bound is not None:
                with barrier:
                    reason = partition_skip_reason(compiled_graph)
                    if reason:
                        recorder.record_finding(
                            "cudagraph_skip", reason, frame_of(None, read_compiling_locals()).where
                        )
            return result

        self._bound = (partition, previous)
        PARTITIONS.put(partition)
        return "yes", ""

    def uninstall(self) -> None:
        bound, self._bound = self._bound, None
        # A later wrapper may still call ours: then ours stays in the chain and does nothing.
        if bound is not None and PARTITIONS.find() is bound[0]:
            PARTITIONS.put(bound[1])


class _Handler(logging.Handler):
    """Log handler: torch logs before it counts, so two records at one count are one skip."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(logging.WARNING)
        self._recorder = recorder
        self._barrier = FaultBarrier(recorder.record_internal_error)
        self._last = -1
        self._logged = 0

    def take(self) -> int:
        logged, self._logged = self._logged, 0
        return logged

    def emit(self, record: logging.LogRecord) -> None:
        with self._barrier:
            text = record.getMessage()
            sizes = _SIZES.search(text)
            if sizes:
                self._recorder.record_finding(
                    "cudagraph_rerecord",
                    f"{sizes[1]} distinct input sizes, each a CUDA graph of its own",
                )
            elif text.lstrip().startswith(_SKIPS):
                counted = count_skips()
                if counted != self._last:
                    self._last = counted
                    self._logged += 1
                    self._recorder.record_finding("cudagraph_skip", *parse_skip(text))


def parse_skip(text: str) -> tuple[str, str]:
    """Splits a record into the reason and the innermost user line; the quoted code is dropped."""
    end = _ENDS.search(text)
    reason = text[: end.start()] if end else text
    return normalize(reason).rstrip(".: "), quoted_place(text[len(reason) :])


def quoted_place(stack: str) -> str:
    """The innermost user line in a stack that torch keeps as text."""
    lines = [
        (match["file"], int(match["line"]), match["function"])
        for match in _STACK_LINE.finditer(stack)
    ]
    return str(find_user_place(reversed(lines)) or "")


def partition_skip_reason(compiled_graph: Any) -> str:
    """The reason why no part of the graph is recorded; empty if one is."""
    reasons = getattr(
        getattr(compiled_graph, "cudagraph_info", None), "cudagraph_fail_reasons", None
    )
    if reasons:
        return normalize(f"skipping cudagraphs due to {', '.join(map(str, reasons))}")
    if not getattr(compiled_graph, "partition_maps", None):
        return "skipping cudagraphs due to no part of the graph that can be recorded"
    return ""


def count_skips() -> int:
    """Number of skips by torch's counter; 0 if it is unreadable."""
    counters = COUNTERS.find()
    group = counters.get("inductor") if isinstance(counters, Mapping) else None
    count = group.get("cudagraph_skips", 0) if isinstance(group, Mapping) else 0
    return count if isinstance(count, int) else 0
