"""Phase timer: converts torch's nested compile timers into mutually exclusive phases.

Exclusive (self) time of a call tree: each interval counts for the innermost open phase."""

from __future__ import annotations

from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.sources.dynamo.typed_getattr import get_number

FORWARD, BACKWARD, AHEAD_OF_TIME = (
    "entire_frame_compile",
    "entire_backward_compile",
    "fullgraph_capture",
)
"""Outermost timers. AHEAD is `aot_compile`, which vLLM uses, and also `torch.export`, which
captures a graph but compiles nothing."""
ROOTS = (FORWARD, BACKWARD, AHEAD_OF_TIME)
CAPTURE_PHASES = frozenset({"dynamo", "guards", "gc"})
"""Phases of an export."""
HEADERS = "headers"
"""Phase for precompiling C++ headers. Only the first compilation of a process waits for it."""

_PHASES = {
    FORWARD: "dynamo",
    BACKWARD: "aot",
    AHEAD_OF_TIME: "dynamo",
    "build_guards": "guards",
    "gc": "gc",
    "backend_compile": "aot",
    "_recursive_pre_grad_passes": "inductor",
    "_recursive_joint_graph_passes": "inductor",
    "inductor_compile": "inductor",
    "AOTAutogradCache.inductor_load": "cache_load",
    "code_gen": "codegen",
    "async_compile.wait": "triton",
    "async_compile.precompile": "triton",
    "compile_file": "cpp",
    HEADERS: HEADERS,
    "CachingAutotuner.benchmark_all_configs": "autotune",
    "benchmark_fused_nodes": "autotune",
}

_MAX_NAMES = 1000

_NESTED = (
    ("dynamo", ("dynamo_cumulative_compile_time_us", "entire_frame_compile_time_s")),
    ("aot", ("aot_autograd_cumulative_compile_time_us", "backend_compile_time_s")),
    ("inductor", ("inductor_cumulative_compile_time_us", "inductor_compile_time_s")),
    ("codegen", ("inductor_code_gen_cumulative_compile_time_us", "code_gen_time_s")),
    ("triton", ("triton_compile_time_us",)),
)


class _Phases(dict[str, "str | None"]):
    """Maps a torch event to the phase that the event opens. None: the time belongs to the outer
    phase."""

    def __missing__(self, event: str) -> str | None:
        phase = "pgo" if event.startswith("pgo.") else None
        if event.endswith(("_template_autotuning", "_template_precompiling")):
            phase = "autotune"
        if len(self) < _MAX_NAMES:
            self[event] = phase
        return phase


PHASES = _Phases(_PHASES)


class PhaseClock:
    """Timers of one thread. Each interval counts for the innermost open phase."""

    __slots__ = ("_open", "_since", "seconds")

    def __init__(self) -> None:
        self._open: list[tuple[str, str]] = []
        self._since = 0.0
        self.seconds: dict[str, float] = {}

    @property
    def is_running(self) -> bool:
        return bool(self._open)

    def begin(self, event: str, at: float) -> None:
        phase = PHASES[event]
        if phase is None:
            return
        if self._open and self._open[-1][1] == HEADERS:
            phase = HEADERS
        self._credit(at)
        self._open.append((event, phase))

    def end(self, event: str, at: float) -> None:
        if event not in [name for name, _ in self._open]:
            return
        self._credit(at)
        # An exception of the job can leave an inner timer without an end event. The inner timer
        # must not keep the outer timers open.
        while self._open.pop()[0] != event:
            pass

    def collect(self) -> dict[str, float]:
        """Return the seconds by phase since the last call."""
        seconds, self.seconds = self.seconds, {}
        return seconds

    def reset(self) -> None:
        self._open.clear()
        self.seconds = {}

    def _credit(self, at: float) -> None:
        if self._open and at > self._since:
            phase = self._open[-1][1]
            self.seconds[phase] = self.seconds.get(phase, 0.0) + at - self._since
        self._since = at


def clock_of(recorder: Recorder) -> PhaseClock:
    """Return the clock of the calling thread, which all sources of compile times share."""
    clock: PhaseClock | None = getattr(recorder.thread_local, "clock", None)
    if clock is None:
        clock = recorder.thread_local.clock = PhaseClock()
    return clock


def phases_at_run_time(record: Any) -> dict[str, float]:
    """Return the phases at run time: autotuning and CUDA graph capture."""
    fields = (
        ("autotune", "runtime_triton_autotune_time_us"),
        ("cuda_graphs", "runtime_cudagraphify_time_us"),
    )
    spent = {phase: _seconds(record, (name,)) for phase, name in fields}
    return {phase: seconds for phase, seconds in spent.items() if seconds}


def phases_of_record(record: Any) -> dict[str, float]:
    """Return exclusive phases from the nested totals of a record, for a torch version without
    events."""
    seconds: dict[str, float] = {}
    outer = ""
    for phase, names in _NESTED:
        inside = _seconds(record, names)
        if inside is None:
            continue
        if outer:
            inside = min(inside, seconds[outer])
            seconds[outer] -= inside
        seconds[phase] = inside
        outer = phase
    return {phase: value for phase, value in seconds.items() if value > 0}


def total_seconds_of(record: Any) -> float:
    """Return the total seconds of the compilation; 0 if the record holds none."""
    names = (
        "duration_us",
        "dynamo_cumulative_compile_time_us",
        "backward_cumulative_compile_time_us",
        "entire_frame_compile_time_s",
    )
    return next((value for value in (_seconds(record, (name,)) for name in names) if value), 0.0)


def _seconds(record: Any, names: tuple[str, ...]) -> float | None:
    for name in names:
        value = get_number(record, name)
        if value is not None and value >= 0:
            return value / 1e6 if name.endswith("_us") else value
    return None
