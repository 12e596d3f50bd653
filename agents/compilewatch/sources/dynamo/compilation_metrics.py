"""Record reader: kind, outcome, frame and reasons from torch's `CompilationMetrics`.

The reader combines the record with the local variables of torch's `_compile` (`compiling`), which
hold fields that some torch versions leave out of the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from compilewatch.sources.dynamo.call_inputs import Inputs
from compilewatch.sources.dynamo.compile_history import (
    REPEAT_REASONS,
    Function,
    History,
    function_of,
)
from compilewatch.sources.dynamo.phase_timer import (
    HEADERS,
    phases_at_run_time,
    phases_of_record,
    total_seconds_of,
)
from compilewatch.sources.dynamo.scrubber import (
    break_reason,
    error_reason,
    guard_group,
    guard_reason,
    shorten_path,
)
from compilewatch.sources.dynamo.typed_getattr import (
    get_bool,
    get_line_number,
    get_number,
    get_text,
)
from compilewatch.sources.dynamo.user_frames import (
    Place,
    find_user_caller,
    is_installed,
    is_vllm_file,
)
from compilewatch.wire.messages import MAX_REASON

_SOFT_FAILURES = ("Unsupported", "UserError", "SkipFrame")
_RACE_TEXT = "runtime guards failed even though they passed"
_BACKEND_TEXT = "BACKEND_MATCH failure"
RACE = "race: several threads compiled the cold function at once"
MIN_HEADER_SECONDS = 0.001


class Frame(NamedTuple):
    """The compiled function. `place` is the line of user code that leads to the function."""

    name: str
    place: Place | None

    @property
    def file(self) -> str:
        return self.place.file if self.place else ""

    @property
    def line(self) -> int:
        return self.place.line if self.place else 0

    @property
    def where(self) -> str:
        return str(self.place or "")


NO_FRAME = Frame("", None)


def frame_of(record: Any, compiling: Mapping[str, Any]) -> Frame:
    """Return the frame of a record. The record of a compilation refused at the recompile limit
    names no frame; the frame then comes from the code in `compiling`."""
    code = compiling.get("code")
    name = get_text(record, "co_name") or get_text(code, "co_name")
    if not name:
        return NO_FRAME
    filename = get_text(record, "co_filename") or get_text(code, "co_filename")
    line = get_line_number(record, "co_firstlineno") or get_line_number(code, "co_firstlineno")
    caller = None
    if is_installed(filename) and not is_vllm_file(filename):
        # A record from a trace has its caller: the frames of this thread are unrelated.
        caller = record.caller if hasattr(record, "caller") else find_user_caller()
    return Frame(name, caller or Place(shorten_path(filename), line, name))


def function_of_record(record: Any, compiling: Mapping[str, Any]) -> Function:
    """Return the function by its place in the source, also for a function of a library."""
    code = compiling.get("code")
    name = get_text(record, "co_name") or get_text(code, "co_name")
    file = get_text(record, "co_filename") or get_text(code, "co_filename")
    return function_of(
        name,
        file,
        get_line_number(record, "co_firstlineno") or get_line_number(code, "co_firstlineno"),
        code,
    )


def compile_id_of(record: Any) -> str:
    """Return torch's ID of the compilation, unique in the process; empty if there is none."""
    return str(getattr(record, "compile_id", None) or "")


def is_limit(record: Any) -> bool:
    """True if torch refused to compile the frame again. From now on, new inputs of the frame run
    eager without a message."""
    reason = get_text(record, "fail_reason").lower()
    return (
        get_text(record, "fail_type") == "Unsupported"
        and "limit" in reason
        and ("exceed" in reason or "reached" in reason)
    )


def reasons_of(record: Any, compiling: Mapping[str, Any]) -> list[str]:
    """Return torch's reason for each cache entry that did not match, newest entry first. The
    record of some torch versions holds only the first reason."""
    listed = compiling.get("reasons") or getattr(record, "recompile_reasons", None)
    first = get_text(record, "recompile_reason")
    reasons = (
        [reason for reason in listed if isinstance(reason, str)] if isinstance(listed, list) else []
    )
    return reasons if first in reasons or not first else [first]


def causes_of(reasons: Sequence[str], history: History, inputs: Inputs) -> list[list[str]]:
    """Return the reasons that explain a recompile, grouped by guard. The guard shared by most
    entries is first."""
    unrelated_to_inputs = [
        reason for reason in reasons if _RACE_TEXT in reason or _BACKEND_TEXT in reason
    ]
    causes: dict[str, list[str]] = {}
    # An entry whose guards all hold fails to match only because of a race or another backend.
    # Otherwise the entries compiled for the most similar call should have matched.
    for reason in unrelated_to_inputs or history.find_closest_reasons(reasons, inputs):
        causes.setdefault(guard_key(reason), []).append(reason)
    return sorted(causes.values(), key=len, reverse=True)


def recompile_reason(reason: str) -> str:
    """Return why a frame is compiled again: torch's text, or RACE if torch reports a race as an
    internal error."""
    return RACE if _RACE_TEXT in reason else guard_reason(reason)


def recompile_reasons(causes: Iterable[Sequence[str]]) -> str:
    """Return one line for each cause, with the values of the newest entry."""
    return "\n".join(recompile_reason(reasons[0]) for reasons in causes)[:MAX_REASON]


def is_at_run_time(record: Any) -> bool:
    """True if the record is about work of compiled code at run time: autotuning or CUDA graph
    recording."""
    return bool(get_bool(record, "is_runtime"))


def kind_of(record: Any, compiling: Mapping[str, Any]) -> str:
    if is_at_run_time(record):
        return "cuda_graph" if _is_recording(record) else "autotune"
    if get_bool(record, "is_forward") is False or _is_lazy_backward(record):
        return "backward"
    if get_bool(record, "has_guarded_code") and not get_number(record, "graph_op_count"):
        return "empty"
    return "recompile" if _is_recompile(record, compiling) else "first"


def outcome_of(record: Any, compiling: Mapping[str, Any]) -> str:
    failure = get_text(record, "fail_type")
    if not failure:
        # Only a forward frame can end without failure and code: torch chose to leave it eager.
        return "skipped" if get_bool(record, "has_guarded_code") is False else "ok"
    if failure in _SOFT_FAILURES:
        return "raised" if compiling.get("one_graph") is True else "skipped"
    return "suppressed" if get_bool(record, "config_suppress_errors") else "raised"


def reason_of(record: Any, outcome: str, recompiled: str, again: str) -> tuple[str, str]:
    """Return the kind of reason (one of REASON_KINDS) and the reason: the cause of the failure or
    of the recompile."""
    failure = failure_of(record) if outcome != "ok" and get_text(record, "fail_reason") else ""
    if is_limit(record):
        return "limit", recompiled
    if again:
        return (
            again,
            f"{REPEAT_REASONS[again]}; it failed: {failure}" if failure else REPEAT_REASONS[again],
        )
    if failure:
        return "failure", failure
    if recompiled == RACE:
        return "race", recompiled
    return ("guard" if recompiled else ""), recompiled


def guard_key(reason: str) -> str:
    """Return the guard whose failure caused a recompile, without the value that the guard met."""
    return RACE if _RACE_TEXT in reason else guard_group(reason)


def saved_seconds_of(record: Any) -> float | None:
    """Return torch's estimate of the seconds that its cache saved. Torch stores the estimate under
    another name."""
    saved = get_number(record, "distributed_ephemeral_timeout_us")
    return saved / 1e6 if saved and saved > 0 else None


def failure_of(record: Any) -> str:
    kind, reason = get_text(record, "fail_type"), get_text(record, "fail_reason")
    return break_reason(reason) if kind in _SOFT_FAILURES else error_reason(f"{kind}: {reason}")


def failure_place(record: Any, frame: Frame) -> str:
    filename = get_text(record, "fail_user_frame_filename")
    if filename and not is_installed(filename):
        return str(
            Place(
                shorten_path(filename),
                get_line_number(record, "fail_user_frame_lineno"),
                frame.name,
            )
        )
    return frame.where


def run_time_part_of(record: Any) -> Any:
    """Return the run-time part of a record, or None. Torch adds the time of `aot_compile` to this
    record, which is already reported."""
    if not phases_at_run_time(record):
        return None
    names = ("runtime_triton_autotune_time_us", "runtime_cudagraphify_time_us", "triton_version")
    return SimpleNamespace(is_runtime=True, **{name: getattr(record, name, None) for name in names})


def seconds_of(record: Any, phases: dict[str, float]) -> dict[str, float]:
    """Return the total and the exclusive phases. The sum of the phases never exceeds the total."""
    exclusive = phases or phases_at_run_time(record) or phases_of_record(record)
    if exclusive.get(HEADERS, 1.0) < MIN_HEADER_SECONDS:
        del exclusive[HEADERS]  # the headers were already compiled
    if getattr(record, "triton_version", None) == "" and "triton" in exclusive:
        # Without triton, the time under this name is the wait for the C++ compiler.
        exclusive["cpp"] = exclusive.get("cpp", 0.0) + exclusive.pop("triton")
    seconds = {phase: round(value, 6) for phase, value in exclusive.items()}
    return {"total": max(round(total_seconds_of(record), 6), sum(seconds.values())), **seconds}


def _is_recording(record: Any) -> bool:
    """True if the record is about recording CUDA graphs, not about autotuning. A recording without
    measurable time has 0 seconds; autotuning without a benchmark has None."""
    recorded, tuned = (
        get_number(record, "runtime_cudagraphify_time_us"),
        get_number(record, "runtime_triton_autotune_time_us"),
    )
    return recorded is not None and recorded >= (tuned or 0)


def _is_lazy_backward(record: Any) -> bool:
    return bool(get_number(record, "backward_cumulative_compile_time_us")) and not get_text(
        record, "co_name"
    )


def _is_recompile(record: Any, compiling: Mapping[str, Any]) -> bool:
    if hasattr(record, "recompile_reason"):
        return record.recompile_reason is not None
    sizes = compiling.get("cache_size")
    # Entries of other objects of the class are no sign of a recompile: each module of a list
    # compiles once.
    same = get_number(sizes, "num_cache_entries_with_same_id_matched_objs")
    return bool(get_number(sizes, "num_cache_entries") if same is None else same)
