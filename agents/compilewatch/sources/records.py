"""One of torch's compilation records, read: what kind of compilation it was, how it ended, of which frame."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from compilewatch.sources.fields import line_number, number, text, truth
from compilewatch.sources.phases import HEADERS, phases_at_run_time, phases_of_record, total_of_record
from compilewatch.sources.places import Place, calling_place, is_installed
from compilewatch.sources.texts import break_reason, error_reason, guard_group, guard_reason, short_path

_SOFT_FAILURES = ("Unsupported", "UserError", "SkipFrame")
_RACES = "runtime guards failed even though they passed"
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
    if is_installed(filename):
        # A record out of a trace brings its caller: this thread's frames have nothing to do with it.
        caller = record.caller if hasattr(record, "caller") else calling_place()
    return Frame(name, caller or Place(short_path(filename), line, name))


def compile_id_of(record: Any) -> str:
    """Torch's name for the compilation, one per process; empty where it has none."""
    return str(getattr(record, "compile_id", None) or "")


def is_limit(record: Any) -> bool:
    """Torch refused to compile the frame once more; from now on its unseen inputs run eager without a word."""
    reason = text(record, "fail_reason").lower()
    return text(record, "fail_type") == "Unsupported" and "limit" in reason and ("exceed" in reason or "reached" in reason)


def is_raced(record: Any) -> bool:
    """Another thread compiled the same cold function meanwhile: nothing about the inputs was new."""
    return _RACES in text(record, "recompile_reason")


def recompile_reason(said: str) -> str:
    """Why a frame is compiled again, in torch's words, or in ours where torch takes a race for a fault of its own."""
    return RACE if _RACES in said else guard_reason(said)


def kind_of(record: Any, compiling: Mapping[str, Any]) -> str:
    if truth(record, "is_runtime"):
        return "autotune"
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


def reason_of(record: Any, outcome: str) -> tuple[str, str]:
    """Which kind of reason, one of REASON_KINDS, and the reason: why it compiled again, or, for one that failed, why it failed."""
    recompiled = recompile_reason(text(record, "recompile_reason"))
    if is_limit(record):
        return "limit", recompiled
    if outcome != "ok" and text(record, "fail_reason"):
        return "failure", failure_of(record)
    if is_raced(record):
        return "race", recompiled
    return ("guard" if recompiled else ""), recompiled


def guard_of(record: Any) -> str:
    """The guard whose failure made torch compile again."""
    return RACE if is_raced(record) else guard_group(text(record, "recompile_reason"))


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
        return str(Place(short_path(filename), line_number(record, "fail_user_frame_lineno"), frame.name))
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


def _is_lazy_backward(record: Any) -> bool:
    return bool(number(record, "backward_cumulative_compile_time_us")) and not text(record, "co_name")


def _is_recompile(record: Any, compiling: Mapping[str, Any]) -> bool:
    if hasattr(record, "recompile_reason"):
        return record.recompile_reason is not None
    sizes = compiling.get("cache_size")
    # Entries of other objects of one class are no sign of a recompile: each module of a list compiles once.
    same = number(sizes, "num_cache_entries_with_same_id_matched_objs")
    return bool(number(sizes, "num_cache_entries") if same is None else same)
