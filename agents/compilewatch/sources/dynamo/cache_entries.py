"""Cache-entry classifier: finds entries without a graph and eager work that Dynamo never looks up.

Epilogue guard: the hook for guard lookups (`guard_lookups.py`) learns only that some entry was hit.
An entry that is not plain compiled code therefore gets one additional guard, the last one, which
always holds. It runs directly before the hook and corrects the counts of the thread's call:
- An entry without a graph is no hit: the guard subtracts the hit that the hook is about to add.
- An entry with eager work in a graph break adds a miss: the call is only partly compiled.
- An entry compiled below a skipped frame adds a miss while a skipped frame is among its callers.

Eager work in a break is detected when torch compiles the function that resumes after the break:
the operand that the break left is a new tensor, and the lookup counts did not rise in the break.

Invariants:
- `on_entry_created` runs on the compiling thread before torch stores the entry. A later change of
  the guards would race with lookups on other threads. The guard runs on any thread, under the GIL.
- Entries, functions and the recorder are held weakly: torch may free its code at any time.
- The guard returns True and never raises: a failed or raising guard would change the job.

Costs: one Python call for each hit of such an entry. An entry with a graph and without breaks gets
no guard unless it is below a skipped frame, which is searched in at most 12 callers.
Source: `CheckFunctionManager` in `torch/_dynamo/guards.py`; names of generated code in
`output_graph.py`, `symbolic_convert.py` and `resume_execution.py`."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import BREAKS, GUARDED_CODE, TENSOR
from compilewatch.sources.dynamo.user_frames import find_compiling_frame
from compilewatch.sources.function_source import FunctionSource

_GRAPH, _RESUME, _OPERAND = "__compiled_fn", "__resume_at", "___stack"
"""Prefixes of names in torch's generated code: a graph, the function that resumes after a break,
and an operand that the break left on the stack."""
_EAGER_CALL_REASONS = ("torch.compiler.disable", "torch._dynamo.disable", "marked as skipped")
"""Parts of break reasons at a call that runs eager with all its callees, without lookups."""
_MAX_CALLERS = 12
_ENTRIES: weakref.WeakKeyDictionary[Recorder, EntryClassifier] = weakref.WeakKeyDictionary()


class Entry:
    """State of one cache entry's code."""

    __slots__ = (
        "has_eager_break",
        "has_graph",
        "has_unchecked_break",
        "is_below_skipped",
        "lookups_at_break",
        "resume_codes",
    )

    def __init__(self, code: CodeType) -> None:
        self.has_graph = any(name.startswith(_GRAPH) for name in code.co_names)
        self.resume_codes: list[CodeType] = []
        """Code of the functions that resume after the break of this entry."""
        self.has_unchecked_break = False
        """True if the entry breaks at a call that torch never looks up."""
        self.lookups_at_break: int | None = None
        """Lookup count of the thread at the break. Set if the reason of the break does not show
        whether torch looks up the call."""
        self.has_eager_break = False
        """True if the break computes tensors eagerly."""
        self.is_below_skipped = False
        """True if the entry was compiled below a frame that torch skipped."""


class EntryClassifier:
    """Cache entries of this process by their code, and the frames that torch skipped. One for each
    recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._entries: weakref.WeakKeyDictionary[CodeType, Entry] = weakref.WeakKeyDictionary()
        self._skipped: weakref.WeakSet[CodeType] = weakref.WeakSet()
        self._eager: weakref.WeakSet[CodeType] = weakref.WeakSet()
        """Resume functions whose break computed tensors eagerly."""
        self._new_code: Any = None
        """Code of the function of the newest entry, until its record arrives."""
        self._compile_count = 0
        """Number of compilations that torch started."""
        self._last_break: Any = None
        """The break in torch's list that was read last."""

    @classmethod
    def of(cls, recorder: Recorder) -> EntryClassifier:
        return _ENTRIES.setdefault(recorder, cls(recorder))

    def on_entry_created(self, code: CodeType, manager: Any, *_: Any, **__: Any) -> None:
        """Classify an entry that torch is about to store, and add the guard. After torch has stored
        the entry, its guards may be in use and must not change."""
        compiling = find_compiling_frame()
        if compiling is None:
            return
        self._check_break(compiling)
        self._new_code = compiling.f_locals.get("code")
        entry = self._entries.setdefault(code, Entry(code))
        known = compiling.f_locals.get("globals") or {}
        entry.resume_codes = [
            known[name].__code__
            for name in code.co_names
            if name.startswith(_RESUME) and name in known
        ]
        self._check_reason(entry, self._new_code)
        # The result of a call at the very end is returned directly, so no hook observes the result.
        # Most likely the result is a tensor.
        entry.has_eager_break = any(rest in self._eager for rest in entry.resume_codes) or (
            entry.has_unchecked_break and not entry.resume_codes
        )
        entry.is_below_skipped = self._is_below_skipped(compiling.f_back)
        if (
            not entry.has_graph
            or entry.resume_codes
            or entry.has_eager_break
            or entry.is_below_skipped
        ):
            _add_last_guard(manager, self._make_guard(entry))

    def on_frame_end(self, code: Any, stays_eager: bool) -> None:
        """Record that torch has finished with a frame on this thread. `stays_eager`: torch left the
        frame eager although the frame contains work."""
        new_code, self._new_code, recorder = self._new_code, None, self._recorder()
        if new_code is not None and new_code is code:
            return  # `on_entry_created` has recorded this entry
        compiling = find_compiling_frame()
        if compiling is not None and compiling.f_locals.get("code") is code:
            self._check_break(compiling)
            if stays_eager:
                self.on_frame_skipped(code)
        if not stays_eager and recorder is not None:
            recorder.record_no_graph(recorder.find_innermost())

    def on_frame_skipped(self, code: Any) -> None:
        """Record that torch leaves a frame with tensors eager, without further lookups."""
        if isinstance(code, CodeType):
            self._skipped.add(code)
            self._mark_eager(sys._getframe(1), code)

    def _check_break(self, compiling: FrameType) -> None:
        """Detect eager work before the resume function that torch compiles now: the call of the
        break returned a new tensor, and torch never looked up this call."""
        known = compiling.f_locals
        code, values = known.get("code"), known.get("locals")
        self._compile_count += 1
        around = next(_frames_of(self._entries, compiling.f_back), None)
        if around is None or not isinstance(values, Mapping):
            return
        entry = self._entries[around.f_code]
        # Torch runs the hook before a compilation only if the function already has entries.
        if (
            code in entry.resume_codes
            and not entry.has_eager_break
            and self._is_unchecked(entry, 1 + (known.get("cache_entry") is not None))
        ):
            given = [
                value
                for name, value in (*values.items(), *around.f_locals.items())
                if not name.startswith(_OPERAND)
            ]
            if _is_new_tensor(_result(values), given):
                self._mark_eager(around, code)

    def _check_reason(self, entry: Entry, code: Any) -> None:
        """Read torch's reason for the break in the code that it has just compiled, if any."""
        reasons, recorder = BREAKS.find(), self._recorder()
        last = reasons[-1] if isinstance(reasons, list) and reasons else None
        before, self._last_break = self._last_break, last
        stack = getattr(last, "user_stack", None) or []
        if (
            last is None
            or last is before
            or recorder is None
            or not stack
            or stack[0].name != getattr(code, "co_name", "")
        ):
            return
        entry.has_unchecked_break = any(part in str(last.reason) for part in _EAGER_CALL_REASONS)
        if len(stack) > 1 and recorder.lookup_step:
            entry.lookups_at_break = self._count_lookups(recorder)

    def _count_lookups(self, recorder: Recorder) -> int:
        call = recorder.get_thread_state()
        return call.hits + call.misses + self._compile_count

    def _is_unchecked(self, entry: Entry, lookups: int) -> bool:
        """True if torch looked up nothing in the entry's break. The `lookups` steps since the break
        belong to the resume function."""
        recorder = self._recorder()
        if (
            entry.has_unchecked_break
            or entry.lookups_at_break is None
            or recorder is None
            or not recorder.lookup_step
        ):
            return entry.has_unchecked_break
        return self._count_lookups(recorder) == entry.lookups_at_break + lookups

    def _mark_eager(self, frame: FrameType | None, code: CodeType) -> None:
        """Mark the innermost running entry and later entries with the same break as partly
        eager."""
        around = next(_frames_of(self._entries, frame), None)
        if around is not None and around.f_code is not code:
            entry = self._entries[around.f_code]
            entry.has_eager_break = True
            self._eager.update(entry.resume_codes)

    def _is_below_skipped(self, frame: FrameType | None) -> bool:
        """True if a frame that torch skipped is among the next callers."""
        for _ in range(_MAX_CALLERS):
            if frame is None or frame.f_code in self._entries:
                return False
            if frame.f_code in self._skipped:
                return True
            frame = frame.f_back
        return False

    def _make_guard(self, entry: Entry) -> Callable[[object], bool]:
        """Return a guard that always holds. Torch runs the guard after all others held, so the
        entry is hit."""
        entries = weakref.ref(self)

        def correct_counts(_: object) -> bool:
            if entry.has_graph and not entry.has_eager_break and not entry.is_below_skipped:
                return True
            known = entries()
            recorder = None if known is None else known._recorder()
            if known is None or recorder is None or not recorder.lookup_step:
                return True
            try:
                call = recorder.get_thread_state()
                if not entry.has_graph:
                    call.hits -= 1  # the hook adds one next, but this is no hit
                    recorder.record_no_graph(call.buffer)
                if entry.has_eager_break or (
                    entry.is_below_skipped and known._is_below_skipped(sys._getframe(1))
                ):
                    call.misses += 1
            except Exception as error:  # noqa: BLE001 - the lookup must continue
                recorder.record_internal_error(error)
            return True

        return correct_counts


class CacheEntries(FunctionSource):
    """Observes each entry before torch stores it."""

    name = "cache_entries"
    module = "torch._dynamo.convert_frame"
    function = GUARDED_CODE

    def on_call(self, *args: Any, **kwargs: Any) -> None:
        EntryClassifier.of(self._recorder).on_entry_created(*args, **kwargs)


def _frames_of(entries: Mapping[CodeType, Entry], frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames that run an entry's code, innermost first."""
    while frame is not None:
        if frame.f_code in entries:
            yield frame
        frame = frame.f_back


def _result(values: Mapping[str, Any]) -> Any:
    """Return the result of the call at a break: the newest operand of the resume function."""
    operands = [
        name for name in values if name.startswith(_OPERAND) and name[len(_OPERAND) :].isdigit()
    ]
    return values[max(operands, key=lambda name: int(name[len(_OPERAND) :]))] if operands else None


def _is_new_tensor(result: Any, given: list[Any]) -> bool:
    """True if `result` is or contains a tensor that is not in `given`. Returning an argument is
    no work.

    Reads types only: `isinstance` reads `__class__`, which may run code of the job."""
    tensor, kind = TENSOR.find(()), type(result)
    held = (
        dict.values(result)
        if issubclass(kind, dict)
        else result
        if issubclass(kind, (tuple, list))
        else (result,)
    )
    return any(
        issubclass(type(value), tensor) and not any(value is other for other in given)
        for value in held
    )


def _add_last_guard(manager: Any, guard: Callable[[object], bool]) -> None:
    add = manager.root.add_epilogue_lambda_guard
    texts = ["compilewatch counts hits of this entry"]
    try:
        add(guard, texts, None)
    except TypeError:
        add(guard, texts)  # older torch takes no user stack
