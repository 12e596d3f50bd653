"""One of torch's compilation records, read: what kind of compilation it was, how it ended, of which frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from compilewatch.sources.dynamo.call_inputs import Inputs
from compilewatch.sources.dynamo.compile_history import AGAIN, Function, History, function_of
from compilewatch.sources.dynamo.phase_timer import (
    HEADERS,
    phases_at_run_time,
    phases_of_record,
    total_of_record,
)
from compilewatch.sources.dynamo.scrubber import (
    break_reason,
    error_reason,
    guard_group,
    guard_reason,
    short_path,
)
from compilewatch.sources.dynamo.typed_getattr import line_number, number, text, truth
from compilewatch.sources.dynamo.user_frames import Place, is_engines, is_installed, users_place
from compilewatch.wire.messages import MAX_REASON

_SOFT_FAILURES = ("Unsupported", "UserError", "SkipFrame")
_RACES = "runtime guards failed even though they passed"
_OTHER_BACKEND = "BACKEND_MATCH failure"
RACE = "race: several threads compiled the cold function at once"
MIN_HEADER_SECONDS = 0.001


class Frame(NamedTuple):
    """The function that was compiled; `place` is the user's line that leads to it."""

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


NOWHERE = Frame("", None)


def frame_of(record: Any, compiling: Mapping[str, Any]) -> Frame:
    """The record's frame; a record of a compilation refused at the limit names none, but torch still has its code at hand."""
    code = compiling.get("code")
    name = text(record, "co_name") or text(code, "co_name")
    if not name:
        return NOWHERE
    filename = text(record, "co_filename") or text(code, "co_filename")
    line = line_number(record, "co_firstlineno") or line_number(code, "co_firstlineno")
    caller = None
    if is_installed(filename) and not is_engines(filename):
        # A record out of a trace brings its caller: this thread's frames have nothing to do with it.
        caller = record.caller if hasattr(record, "caller") else users_place()
    return Frame(name, caller or Place(short_path(filename), line, name))


def function_compiled(record: Any, compiling: Mapping[str, Any]) -> Function:
    """The function by the place where it is written, also where it belongs to a library."""
    code = compiling.get("code")
    name = text(record, "co_name") or text(code, "co_name")
    file = text(record, "co_filename") or text(code, "co_filename")
    return function_of(
        name,
        file,
        line_number(record, "co_firstlineno") or line_number(code, "co_firstlineno"),
        code,
    )


def compile_id_of(record: Any) -> str:
    """Torch's name for the compilation, one per process; empty where it has none."""
    return str(getattr(record, "compile_id", None) or "")


def is_limit(record: Any) -> bool:
    """Torch refused to compile the frame once more; from now on its unseen inputs run eager without a word."""
    reason = text(record, "fail_reason").lower()
    return (
        text(record, "fail_type") == "Unsupported"
        and "limit" in reason
        and ("exceed" in reason or "reached" in reason)
    )


def reasons_of(record: Any, compiling: Mapping[str, Any]) -> list[str]:
    """Torch's reason for each cache entry why it did not match, the newest entry first; its record has the first of them alone."""
    several = compiling.get("reasons") or getattr(record, "recompile_reasons", None)
    first = text(record, "recompile_reason")
    lines = (
        [reason for reason in several if isinstance(reason, str)]
        if isinstance(several, list)
        else []
    )
    return lines if first in lines or not first else [first]


def causes_of(reasons: Sequence[str], history: History, inputs: Inputs) -> list[list[str]]:
    """The reasons that say why a frame is compiled again: those of one guard together, and the guard that most entries share first."""
    sure = [reason for reason in reasons if _RACES in reason or _OTHER_BACKEND in reason]
    causes: dict[str, list[str]] = {}
    # An entry whose guards all hold would have matched but for a race or another backend; of the rest the likest would have.
    for reason in sure or history.blamed(reasons, inputs):
        causes.setdefault(guard_told(reason), []).append(reason)
    return sorted(causes.values(), key=len, reverse=True)


def recompile_reason(said: str) -> str:
    """Why a frame is compiled again, in torch's words, or in ours where torch takes a race for a fault of its own."""
    return RACE if _RACES in said else guard_reason(said)


def recompile_reasons(causes: Iterable[Sequence[str]]) -> str:
    """The causes, one a line, each with the values of the newest entry."""
    return "\n".join(recompile_reason(reasons[0]) for reasons in causes)[:MAX_REASON]


def is_at_run_time(record: Any) -> bool:
    """Whether it is about what compiled code still had to do when it ran: tune its kernels, or record its CUDA graphs."""
    return bool(truth(record, "is_runtime"))


def kind_of(record: Any, compiling: Mapping[str, Any]) -> str:
    if is_at_run_time(record):
        return "cuda_graph" if _is_recording(record) else "autotune"
    if truth(record, "is_forward") is False or _is_lazy_backward(record):
        return "backward"
    if truth(record, "has_guarded_code") and not number(record, "graph_op_count"):
        return "empty"
    return "recompile" if _is_recompile(record, compiling) else "first"


def outcome_of(record: Any, compiling: Mapping[str, Any]) -> str:
    failure = text(record, "fail_type")
    if not failure:
        # Without a failure, only a forward frame can end without code: torch looked at it and chose to leave it eager.
        return "skipped" if truth(record, "has_guarded_code") is False else "ok"
    if failure in _SOFT_FAILURES:
        return "raised" if compiling.get("one_graph") is True else "skipped"
    return "suppressed" if truth(record, "config_suppress_errors") else "raised"


def reason_of(record: Any, outcome: str, recompiled: str, again: str) -> tuple[str, str]:
    """Which kind of reason, one of REASON_KINDS, and the reason: why it compiled again, or, for one that failed, why it failed."""
    failure = failure_of(record) if outcome != "ok" and text(record, "fail_reason") else ""
    if is_limit(record):
        return "limit", recompiled
    if again:
        return again, f"{AGAIN[again]}; it failed: {failure}" if failure else AGAIN[again]
    if failure:
        return "failure", failure
    if recompiled == RACE:
        return "race", recompiled
    return ("guard" if recompiled else ""), recompiled


def guard_told(reason: str) -> str:
    """The guard whose failure made torch compile again, whatever value it met."""
    return RACE if _RACES in reason else guard_group(reason)


def saved_of(record: Any) -> float | None:
    """Seconds torch believes its cache saved, which it keeps under another name; an estimate."""
    saved = number(record, "distributed_ephemeral_timeout_us")
    return saved / 1e6 if saved and saved > 0 else None


def failure_of(record: Any) -> str:
    kind, reason = text(record, "fail_type"), text(record, "fail_reason")
    return break_reason(reason) if kind in _SOFT_FAILURES else error_reason(f"{kind}: {reason}")


def failure_place(record: Any, frame: Frame) -> str:
    filename = text(record, "fail_user_frame_filename")
    if filename and not is_installed(filename):
        return str(
            Place(short_path(filename), line_number(record, "fail_user_frame_lineno"), frame.name)
        )
    return frame.where


def at_run_time_alone(record: Any) -> Any:
    """What of a record is of compiled code's first run, None where nothing is: torch adds to it what `aot_compile` took, told already."""
    if not phases_at_run_time(record):
        return None
    names = ("runtime_triton_autotune_time_us", "runtime_cudagraphify_time_us", "triton_version")
    return SimpleNamespace(is_runtime=True, **{name: getattr(record, name, None) for name in names})


def seconds_of(record: Any, phases: dict[str, float]) -> dict[str, float]:
    """The total and the exclusive phases; the sum of the phases never passes the total."""
    exclusive = phases or phases_at_run_time(record) or phases_of_record(record)
    if exclusive.get(HEADERS, 1.0) < MIN_HEADER_SECONDS:
        del exclusive[HEADERS]  # they were there already
    if getattr(record, "triton_version", None) == "" and "triton" in exclusive:
        # Without triton, what torch waits for under that name is the C++ compiler.
        exclusive["cpp"] = exclusive.get("cpp", 0.0) + exclusive.pop("triton")
    seconds = {phase: round(value, 6) for phase, value in exclusive.items()}
    return {"total": max(round(total_of_record(record), 6), sum(seconds.values())), **seconds}


def _is_recording(record: Any) -> bool:
    """Whether it spent its time on CUDA graphs; one that took no measurable time has a 0 there, and None where it benchmarked nothing."""
    recorded, tuned = (
        number(record, "runtime_cudagraphify_time_us"),
        number(record, "runtime_triton_autotune_time_us"),
    )
    return recorded is not None and recorded >= (tuned or 0)


def _is_lazy_backward(record: Any) -> bool:
    return bool(number(record, "backward_cumulative_compile_time_us")) and not text(
        record, "co_name"
    )


def _is_recompile(record: Any, compiling: Mapping[str, Any]) -> bool:
    if hasattr(record, "recompile_reason"):
        return record.recompile_reason is not None
    sizes = compiling.get("cache_size")
    # Entries of other objects of one class are no sign of a recompile: each module of a list compiles once.
    same = number(sizes, "num_cache_entries_with_same_id_matched_objs")
    return bool(number(sizes, "num_cache_entries") if same is None else same)
