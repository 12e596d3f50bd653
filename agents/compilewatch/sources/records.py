"""One of torch's compilation records, read: what kind of compilation it was, how it ended, of which frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from compilewatch.sources.phases import phases_at_run_time, phases_of_record, total_of_record
from compilewatch.sources.places import Place, calling_place, is_installed
from compilewatch.sources.texts import break_reason, error_reason, guard_group, guard_reason, short_path

_SOFT_FAILURES = ("Unsupported", "UserError", "SkipFrame")
_RACE = "runtime guards failed even though they passed"


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
    name = str(getattr(record, "co_name", None) or getattr(code, "co_name", ""))
    if not name:
        return NOWHERE
    filename = str(getattr(record, "co_filename", None) or getattr(code, "co_filename", ""))
    line = int(getattr(record, "co_firstlineno", None) or getattr(code, "co_firstlineno", None) or 0)
    own = Place(short_path(filename), line, name)
    return Frame(name, (calling_place() or own) if is_installed(filename) else own)


def is_limit(record: Any) -> bool:
    """Torch refused to compile the frame once more; from now on its unseen inputs run eager without a word."""
    text = (getattr(record, "fail_reason", None) or "").lower()
    return getattr(record, "fail_type", None) == "Unsupported" and "limit" in text and ("exceed" in text or "reached" in text)


def kind_of(record: Any, compiling: Mapping[str, Any]) -> str:
    if getattr(record, "is_runtime", False):
        return "autotune"
    if getattr(record, "is_forward", None) is False or _is_lazy_backward(record):
        return "backward"
    if getattr(record, "has_guarded_code", None) and not getattr(record, "graph_op_count", None):
        return "empty"
    return "recompile" if _is_recompile(record, compiling) else "first"


def outcome_of(record: Any, compiling: Mapping[str, Any]) -> str:
    failure = getattr(record, "fail_type", None)
    if failure is None:
        # Without a failure, only a forward frame can end without code: torch looked at it and chose to leave it eager.
        return "skipped" if getattr(record, "has_guarded_code", None) is False else "ok"
    if failure in _SOFT_FAILURES:
        return "raised" if compiling.get("one_graph") else "skipped"
    return "suppressed" if getattr(record, "config_suppress_errors", False) else "raised"


def reason_of(record: Any, outcome: str) -> str:
    """Why it compiled again, or, for one that failed, why it failed."""
    failure = getattr(record, "fail_reason", None)
    if failure and outcome != "ok" and not is_limit(record):
        return failure_of(record)
    recompiled = getattr(record, "recompile_reason", None)
    return guard_reason(recompiled) if recompiled else ""


def guard_of(record: Any) -> str:
    """The guard whose failure made torch compile again."""
    reason = getattr(record, "recompile_reason", None)
    if not reason:
        return ""
    if _RACE in reason:
        return "race: several threads compiled the cold function at once"
    return guard_group(reason)


def saved_of(record: Any) -> float | None:
    """Seconds torch believes its cache saved, which it keeps under another name; an estimate."""
    saved = getattr(record, "distributed_ephemeral_timeout_us", None)
    return saved / 1e6 if saved else None


def failure_of(record: Any) -> str:
    text = str(getattr(record, "fail_reason", "") or "")
    if getattr(record, "fail_type", None) in _SOFT_FAILURES:
        return break_reason(text)
    return error_reason(f"{getattr(record, 'fail_type', '')}: {text}")


def failure_place(record: Any, frame: Frame) -> str:
    filename = getattr(record, "fail_user_frame_filename", None)
    if filename and not is_installed(filename):
        return str(Place(short_path(filename), getattr(record, "fail_user_frame_lineno", None) or 0, frame.name))
    return frame.where


def seconds_of(record: Any, phases: dict[str, float]) -> dict[str, float]:
    """The total and the exclusive phases; the sum of the phases never passes the total."""
    exclusive = phases or phases_at_run_time(record) or phases_of_record(record)
    if getattr(record, "triton_version", None) == "" and "triton" in exclusive:
        # Without triton, what torch waits for under that name is the C++ compiler.
        exclusive["cpp"] = exclusive.get("cpp", 0.0) + exclusive.pop("triton")
    seconds = {phase: round(value, 6) for phase, value in exclusive.items()}
    return {"total": max(round(total_of_record(record), 6), sum(seconds.values())), **seconds}


def _is_lazy_backward(record: Any) -> bool:
    return bool(getattr(record, "backward_cumulative_compile_time_us", None)) and not getattr(record, "co_name", None)


def _is_recompile(record: Any, compiling: Mapping[str, Any]) -> bool:
    if hasattr(record, "recompile_reason"):
        return record.recompile_reason is not None
    cache_size = compiling.get("cache_size")
    return bool(getattr(cache_size, "num_cache_entries", 0))
