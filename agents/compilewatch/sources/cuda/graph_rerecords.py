"""CUDA graph re-recordings: each one stalls a call and takes additional memory."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.torch_internals import RECORDING
from compilewatch.sources import Capability, Source
from compilewatch.sources.cuda.graph_pools import RECORDINGS
from compilewatch.sources.cuda.graph_skips import quoted_place

_MISMATCHES = {
    "StaticInputIdxMismatch": "recorded again: the address of a parameter or static input changed",
    "CudagraphManagedIdxMismatch": "recorded again: an earlier output that it reads lies elsewhere",
    "ExpectedDeadIndicesBeforeGraphMismatch": "recorded again: an earlier output is still held",
}
_SIZE = "recorded for another input size"
_PATH = "recorded again: it follows another graph than before"
MAX_REMEMBERED = 100_000


class CudaGraphRecordings(Source):
    """Wraps torch's recording method, on the job's thread; a recording takes milliseconds."""

    name = "cuda_graph_recordings"
    module = "torch._inductor.cudagraph_trees"

    def __init__(self) -> None:
        self._bound: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._known: weakref.WeakKeyDictionary[Any, set[object]] = weakref.WeakKeyDictionary()

    def install(self, recorder: Recorder) -> Capability:
        if RECORDING.problem():
            return "no", f"no {RECORDING.lost_capability}: {RECORDING.problem()}"
        previous, barrier = RECORDING.find(), FaultBarrier(recorder.record_internal_error)

        @functools.wraps(previous)
        def record(self_: Any, new_inputs: Any, function_id: Any, *rest: Any, **named: Any) -> Any:
            if self._bound is not None:
                with barrier:
                    self._report(recorder, self_, function_id, sys._getframe(1))
            return previous(self_, new_inputs, function_id, *rest, **named)

        self._bound = (record, previous)
        RECORDING.put(record)
        return "yes", ""

    def uninstall(self) -> None:
        bound, self._bound = self._bound, None
        # A later wrapper may still call ours: then ours stays in the chain and does nothing.
        if bound is not None and RECORDING.find() is bound[0]:
            RECORDING.put(bound[1])

    def _report(
        self, recorder: Recorder, manager: Any, function_id: Any, caller: FrameType
    ) -> None:
        RECORDINGS.note(
            int(getattr(manager, "device_index", 0)),
            getattr(manager, "cuda_graphs_thread_pool", None),
        )
        known = self._known.setdefault(manager, set())
        why = recording_cause(caller, function_id in known)
        if len(known) < MAX_REMEMBERED:
            known.add(function_id)
        if why:
            traces = getattr(manager, "ids_to_stack_traces", {}).get(function_id) or []
            recorder.record_finding(
                "cudagraph_rerecord",
                why,
                next((quoted_place(trace) for trace in traces if trace), ""),
            )


def recording_cause(caller: FrameType, again: bool) -> str:
    """Reads the cause of a recording from torch's frames; empty for the first one of a function."""
    status = caller.f_locals.get("status")
    if status is not None:
        # torch compared the inputs with those of a recorded graph, and they did not match.
        name = getattr(status, "name", str(status))
        return _MISMATCHES.get(name, f"recorded again: {name}"[:200])
    if again:
        return _PATH
    return _SIZE if _count_sizes(caller) > 1 else ""


def _count_sizes(frame: FrameType | None) -> int:
    """Number of input sizes with a recorded graph, including the present one."""
    while frame is not None:
        if frame.f_code.co_name == "deferred_cudagraphify":
            return len(frame.f_locals.get("fn_cache") or ())
        frame = frame.f_back
    return 1
