"""Compile history: the earlier compilations of this process.

The history finds the cache entry that a call should have matched, and recompiles that no guard
explains."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from types import CodeType
from typing import NamedTuple

from compilewatch.recording.recorder import Recorder
from compilewatch.sources.dynamo.call_inputs import NO_INPUTS, Inputs
from compilewatch.sources.dynamo.scrubber import compile_id_in

RESET, NEW_CODE, FAILED = "reset", "new code object", "failed again"
REPEAT_REASONS = {
    RESET: "compiled again after torch._dynamo.reset()",
    NEW_CODE: "compiled again as a new code object of the same function",
    FAILED: "compiled again because its last compilation failed",
}
"""Text of the finding for each kind of recompile without a failed guard."""
MAX_ENTRIES, MAX_FUNCTIONS, MAX_PER_FUNCTION = 2048, 1024, 64
_SHARED_NAMES = (
    "torch_dynamo_resume_in_",
    "<resume in ",
    "<lambda>",
    "<listcomp>",
    "<genexpr>",
)
"""Prefixes of names that several functions of one line can share."""
_HISTORIES: weakref.WeakKeyDictionary[Recorder, History] = weakref.WeakKeyDictionary()


class Function(NamedTuple):
    """A function by its line and column in the source, which all its code objects share."""

    name: str
    file: str
    line: int
    column: int | None = None
    """None: unknown."""

    @property
    def is_unique(self) -> bool:
        """True if no other function of this name can be at this place."""
        return bool(self.column) or not self.name.startswith(_SHARED_NAMES)


class _FunctionState:
    """Compilations of one function. `epoch` is the epoch of the last compilation."""

    def __init__(self) -> None:
        self.epoch = -1
        self.numbers: set[str] = set()
        self.failed: set[tuple[int, ...]] = set()
        self.epoch_by_inputs: OrderedDict[Inputs, int] = OrderedDict()

    def note(self, epoch: int, number: str, inputs: Inputs, failed: bool) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.numbers.clear()
            self.failed.clear()
        if len(self.numbers) < MAX_PER_FUNCTION:
            self.numbers.add(number)
        if not failed:
            self.failed.discard(inputs.modules)
        elif len(self.failed) < MAX_PER_FUNCTION:
            self.failed.add(inputs.modules)
        self.epoch_by_inputs[inputs] = epoch
        self.epoch_by_inputs.move_to_end(inputs)
        if len(self.epoch_by_inputs) > MAX_PER_FUNCTION:
            self.epoch_by_inputs.popitem(last=False)

    def is_from_earlier_epoch(self, epoch: int, inputs: Inputs) -> bool:
        """True if a call with these inputs compiled before the last reset, but not since."""
        return self.epoch_by_inputs.get(inputs, epoch) < epoch

    def is_layer_from_earlier_epoch(self, epoch: int, inputs: Inputs) -> bool:
        """True if the layer compiled before the last reset, but not since, with any inputs."""
        epochs = [
            known_epoch
            for known, known_epoch in self.epoch_by_inputs.items()
            if known.modules == inputs.modules
        ]
        return bool(epochs) and max(epochs) < epoch


class History:
    """History of one recorder. An epoch lasts from one reset of torch to the next."""

    def __init__(self) -> None:
        self._epoch = 0
        self._entries: OrderedDict[str, Inputs] = OrderedDict()
        self._functions: OrderedDict[Function, _FunctionState] = OrderedDict()
        self._lock = threading.RLock()

    @classmethod
    def begin(cls, recorder: Recorder) -> History:
        """Start an empty history for a recorder."""
        _HISTORIES.pop(recorder, None)
        return cls.of(recorder)

    @classmethod
    def of(cls, recorder: Recorder) -> History:
        """Return the history of the recorder."""
        known = _HISTORIES.get(recorder)
        return _HISTORIES.setdefault(recorder, cls()) if known is None else known

    def reset(self) -> None:
        """Start a new epoch: torch discarded all compiled code."""
        with self._lock:
            self._epoch += 1
            self._entries.clear()

    def find_closest_reasons(self, reasons: Sequence[str], inputs: Inputs) -> list[str]:
        """Return the reasons of the cache entries that were compiled for the most similar calls."""
        scored = [
            (reason, self._entries.get(compile_id_in(reason), NO_INPUTS).similarity_to(inputs))
            for reason in reasons
        ]
        best = max((score for _, score in scored), default=None)
        return [reason for reason, score in scored if score == best]

    def note(
        self, function: Function, compile_id: str, kind: str, inputs: Inputs, failed: bool
    ) -> str:
        """Record a compilation. Return a key of AGAIN if the function was compiled before and no
        guard explains the recompile, otherwise an empty string."""
        with self._lock:
            if kind == "first" and compile_id in self._entries:
                self.reset()  # torch restarts its IDs only at a reset, which was not observed
            known = self._functions.setdefault(function, _FunctionState())
            number = compile_id.rpartition("/")[0]
            repeat = self._find_repeat(function, known, number, kind, inputs)
            known.note(self._epoch, number, inputs, failed)
            self._functions.move_to_end(function)
            self._entries[compile_id] = inputs
            if len(self._functions) > MAX_FUNCTIONS:
                self._functions.popitem(last=False)
            if len(self._entries) > MAX_ENTRIES:
                self._entries.popitem(last=False)
            return repeat

    def _find_repeat(
        self, function: Function, known: _FunctionState, number: str, kind: str, inputs: Inputs
    ) -> str:
        if known.epoch < 0 or kind not in ("first", "recompile"):
            return ""
        if kind == "recompile":
            return RESET if known.is_from_earlier_epoch(self._epoch, inputs) else ""
        if known.epoch != self._epoch or known.is_layer_from_earlier_epoch(self._epoch, inputs):
            return RESET
        if number not in known.numbers and function.is_unique:
            return NEW_CODE
        return FAILED if inputs.modules in known.failed else ""


def function_of(name: str, file: str, line: int, code: object) -> Function:
    """Return the function of a code object, or of a record's fields if there is no code object."""
    column = None
    if name.startswith("<") and isinstance(code, CodeType) and hasattr(code, "co_positions"):
        column = next((found[2] for found in code.co_positions() if found[2]), None)
    return Function(name, file, line, column)
