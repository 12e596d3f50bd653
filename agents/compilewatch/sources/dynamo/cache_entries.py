"""What torch's cache entries lead to: code with a graph or without one, and eager work inside it that Dynamo never looks up.

The hook for guard lookups hears only that one entry or another was hit. Entries of which there is more to say get one more guard, the last
one, which always holds: it runs right before the hook does, and says so to the thread's counts."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import BREAKS, GUARDED_CODE, TENSOR
from compilewatch.sources.dynamo.user_frames import compiling_frame
from compilewatch.sources.function_source import FunctionSource

_GRAPH, _RESUME, _OPERAND = "__compiled_fn", "__resume_at", "___stack"
"""How the names begin by which torch's code calls a graph and the rest of a function after a break, and hands on what a break left."""
_NEVER_LOOKED_UP = ("torch.compiler.disable", "torch._dynamo.disable", "marked as skipped")
"""Parts of the reasons of breaks at a call that runs eager with all that it calls, so that torch looks nothing of it up."""
_MOST_CALLERS = 12
_ENTRIES: weakref.WeakKeyDictionary[Recorder, Entries] = weakref.WeakKeyDictionary()


class Entry:
    """One cache entry's code."""

    __slots__ = ("beneath", "breaks", "eager", "graph", "lookups", "unseen")

    def __init__(self, code: CodeType) -> None:
        self.graph = any(name.startswith(_GRAPH) for name in code.co_names)
        self.breaks: list[CodeType] = []
        """The functions that it goes on with after its break."""
        self.unseen = False
        """Whether it breaks at a call that torch never looks up."""
        self.lookups: int | None = None
        """Of this thread until then, where it breaks at a call of which only what follows says whether torch looks it up."""
        self.eager = False
        """Whether tensors are computed eager in its break."""
        self.beneath = False
        """Whether it was compiled below a frame that torch skipped."""


class Entries:
    """The entries of this process, by their code, and the frames that torch skipped. One per recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._entries: weakref.WeakKeyDictionary[CodeType, Entry] = weakref.WeakKeyDictionary()
        self._skipped: weakref.WeakSet[CodeType] = weakref.WeakSet()
        self._eager: weakref.WeakSet[CodeType] = weakref.WeakSet()
        """Functions after breaks in which tensors were computed eager."""
        self._made: Any = None
        """The function of the newest entry, until its record arrives."""
        self._compiled = 0
        """How often torch compiled, or tried to."""
        self._seen: Any = None
        """The break that was met last."""

    @classmethod
    def of(cls, recorder: Recorder) -> Entries:
        return _ENTRIES.setdefault(recorder, cls(recorder))

    def made(self, code: CodeType, manager: Any, *_: Any, **__: Any) -> None:
        """Torch made an entry and is about to keep it: later its guards may be in use, and nothing can be added to them."""
        compiling = compiling_frame()
        if compiling is None:
            return
        self._look_at_break(compiling)
        self._made = compiling.f_locals.get("code")
        entry = self._entries.setdefault(code, Entry(code))
        known = compiling.f_locals.get("globals") or {}
        entry.breaks = [
            known[name].__code__
            for name in code.co_names
            if name.startswith(_RESUME) and name in known
        ]
        self._look_at_reason(entry, self._made)
        # What a call at the very end answers is handed back at once, so that nothing of ours sees it: most likely it is a tensor.
        entry.eager = any(rest in self._eager for rest in entry.breaks) or (
            entry.unseen and not entry.breaks
        )
        entry.beneath = self._is_beneath(compiling.f_back)
        if not entry.graph or entry.breaks or entry.eager or entry.beneath:
            _add_last_guard(manager, self._speaker(entry))

    def ended(self, code: Any, stays_eager: bool) -> None:
        """Torch is through with the frame that it looked at on this thread; `stays_eager`: it left it so though it holds work."""
        made, self._made, recorder = self._made, None, self._recorder()
        if made is not None and made is code:
            return  # an entry: known already
        compiling = compiling_frame()
        if compiling is not None and compiling.f_locals.get("code") is code:
            self._look_at_break(compiling)
            if stays_eager:
                self.skipped(code)
        if not stays_eager and recorder is not None:
            recorder.met_no_graph(recorder.innermost())

    def skipped(self, code: Any) -> None:
        """Torch leaves the frame eager for good, and does not look it up again; it holds tensors."""
        if isinstance(code, CodeType):
            self._skipped.add(code)
            self._mark(sys._getframe(1), code)

    def _look_at_break(self, compiling: FrameType) -> None:
        """Whether what is compiled goes on after a break in which a tensor came out of a call that torch never looked up."""
        known = compiling.f_locals
        code, values, self._compiled = known.get("code"), known.get("locals"), self._compiled + 1
        around = next(_frames_of(self._entries, compiling.f_back), None)
        if around is None or not isinstance(values, Mapping):
            return
        entry = self._entries[around.f_code]
        # The hook is asked for a function that has entries already, before it is compiled.
        if (
            code in entry.breaks
            and not entry.eager
            and self._is_unseen(entry, 1 + (known.get("cache_entry") is not None))
        ):
            given = [
                value
                for name, value in (*values.items(), *around.f_locals.items())
                if not name.startswith(_OPERAND)
            ]
            if _is_new_tensor(_result(values), given):
                self._mark(around, code)

    def _look_at_reason(self, entry: Entry, code: Any) -> None:
        """What torch says of the break in the code that it compiled just now, if there is one."""
        reasons, recorder = BREAKS.find(), self._recorder()
        last = reasons[-1] if isinstance(reasons, list) and reasons else None
        seen, self._seen = self._seen, last
        stack = getattr(last, "user_stack", None) or []
        if (
            last is None
            or last is seen
            or recorder is None
            or not stack
            or stack[0].name != getattr(code, "co_name", "")
        ):
            return
        entry.unseen = any(part in str(last.reason) for part in _NEVER_LOOKED_UP)
        if len(stack) > 1 and recorder.token:
            entry.lookups = self._lookups(recorder)

    def _lookups(self, recorder: Recorder) -> int:
        call = recorder.call()
        return call.hits + call.misses + self._compiled

    def _is_unseen(self, entry: Entry, lookups: int) -> bool:
        """Whether torch looked nothing up since the entry's break but, in `lookups` steps, the function that goes on after it."""
        recorder = self._recorder()
        if entry.unseen or entry.lookups is None or recorder is None or not recorder.token:
            return entry.unseen
        return self._lookups(recorder) == entry.lookups + lookups

    def _mark(self, frame: FrameType | None, code: CodeType) -> None:
        """The innermost entry that runs holds eager work, and so will others that break at the same place."""
        around = next(_frames_of(self._entries, frame), None)
        if around is not None and around.f_code is not code:
            entry = self._entries[around.f_code]
            entry.eager = True
            self._eager.update(entry.breaks)

    def _is_beneath(self, frame: FrameType | None) -> bool:
        """Whether a frame that torch skipped is among the next callers."""
        for _ in range(_MOST_CALLERS):
            if frame is None or frame.f_code in self._entries:
                return False
            if frame.f_code in self._skipped:
                return True
            frame = frame.f_back
        return False

    def _speaker(self, entry: Entry) -> Callable[[object], bool]:
        """A guard that always holds, asked where all others held: the entry is hit."""
        entries = weakref.ref(self)

        def speak(_: object) -> bool:
            if entry.graph and not entry.eager and not entry.beneath:
                return True
            known = entries()
            recorder = None if known is None else known._recorder()
            if known is None or recorder is None or not recorder.token:
                return True
            try:
                call = recorder.call()
                if not entry.graph:
                    call.hits -= 1  # the hook adds one at once, and this is none
                    recorder.met_no_graph(call.line)
                if entry.eager or (entry.beneath and known._is_beneath(sys._getframe(1))):
                    call.misses += 1
            except Exception as error:  # noqa: BLE001 - the lookup goes on
                recorder.internal_error(error)
            return True

        return speak


class CacheEntries(FunctionSource):
    """Hears of each entry before torch keeps it."""

    name = "cache_entries"
    module = "torch._dynamo.convert_frame"
    function = GUARDED_CODE

    def hear(self, *args: Any, **kwargs: Any) -> None:
        Entries.of(self._recorder).made(*args, **kwargs)


def _frames_of(entries: Mapping[CodeType, Entry], frame: FrameType | None) -> Iterator[FrameType]:
    """The frames that run an entry's code, from the innermost outwards."""
    while frame is not None:
        if frame.f_code in entries:
            yield frame
        frame = frame.f_back


def _result(values: Mapping[str, Any]) -> Any:
    """What the call of a break answered: the newest operand of the function that goes on after it."""
    operands = [
        name for name in values if name.startswith(_OPERAND) and name[len(_OPERAND) :].isdigit()
    ]
    return values[max(operands, key=lambda name: int(name[len(_OPERAND) :]))] if operands else None


def _is_new_tensor(result: Any, given: list[Any]) -> bool:
    """Whether it is, or holds, a tensor that was not there before; one that is handed back is no work. Asks for types alone: an object of
    the job's may fail to say its class."""
    tensor, kind = TENSOR.find(()), type(result)
    held = (
        dict.values(result)
        if issubclass(kind, dict)
        else result
        if issubclass(kind, (tuple, list))
        else (result,)
    )
    return any(
        issubclass(type(one), tensor) and not any(one is other for other in given) for one in held
    )


def _add_last_guard(manager: Any, guard: Callable[[object], bool]) -> None:
    add = manager.root.add_epilogue_lambda_guard
    said = ["what the entry leads to is counted"]
    try:
        add(guard, said, None)
    except TypeError:
        add(guard, said)  # of a torch that does not ask for the user's stack
