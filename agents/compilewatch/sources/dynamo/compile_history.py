"""What this process compiled before: which entry a call should have met, and whether a function is compiled again without a guard."""

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
AGAIN = {
    RESET: "compiled again after torch._dynamo.reset()",
    NEW_CODE: "compiled again as a new code object of the same function",
    FAILED: "compiled again because its last compilation failed",
}
"""How a finding says why a function is compiled again without a guard that failed, by the kind of reason."""
MOST_ENTRIES, MOST_FUNCTIONS, MOST_OF_A_FUNCTION = 2048, 1024, 64
_MANY_OF_ONE_NAME = (
    "torch_dynamo_resume_in_",
    "<resume in ",
    "<lambda>",
    "<listcomp>",
    "<genexpr>",
)
"""How names begin that several functions of one line share."""
_HISTORIES: weakref.WeakKeyDictionary[Recorder, History] = weakref.WeakKeyDictionary()


class Function(NamedTuple):
    """A function by the line and column where it is written, which its code objects share."""

    name: str
    file: str
    line: int
    column: int | None = None
    """None: not known."""

    @property
    def is_one(self) -> bool:
        """Whether nothing else can be written there under that name."""
        return bool(self.column) or not self.name.startswith(_MANY_OF_ONE_NAME)


class _Compiled:
    """What is known of a function; `epoch` is that of its last compilation."""

    def __init__(self) -> None:
        self.epoch = -1
        self.numbers: set[str] = set()
        self.failed: set[tuple[int, ...]] = set()
        self.met: OrderedDict[Inputs, int] = OrderedDict()

    def note(self, epoch: int, number: str, inputs: Inputs, failed: bool) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.numbers.clear()
            self.failed.clear()
        if len(self.numbers) < MOST_OF_A_FUNCTION:
            self.numbers.add(number)
        if not failed:
            self.failed.discard(inputs.modules)
        elif len(self.failed) < MOST_OF_A_FUNCTION:
            self.failed.add(inputs.modules)
        self.met[inputs] = epoch
        self.met.move_to_end(inputs)
        if len(self.met) > MOST_OF_A_FUNCTION:
            self.met.popitem(last=False)

    def met_before(self, epoch: int, inputs: Inputs) -> bool:
        """Whether such a call compiled before the last reset, and not since."""
        return self.met.get(inputs, epoch) < epoch

    def layer_before(self, epoch: int, inputs: Inputs) -> bool:
        """The same of the layer, whatever its other inputs."""
        epochs = [when for met, when in self.met.items() if met.modules == inputs.modules]
        return bool(epochs) and max(epochs) < epoch


class History:
    """Of a recorder; an epoch lasts from one reset of torch to the next."""

    def __init__(self) -> None:
        self._epoch = 0
        self._entries: OrderedDict[str, Inputs] = OrderedDict()
        self._functions: OrderedDict[Function, _Compiled] = OrderedDict()
        self._changing = threading.RLock()

    @classmethod
    def begin(cls, recorder: Recorder) -> History:
        """That of a recorder that starts now."""
        _HISTORIES.pop(recorder, None)
        return cls.of(recorder)

    @classmethod
    def of(cls, recorder: Recorder) -> History:
        """The recorder's own."""
        known = _HISTORIES.get(recorder)
        return _HISTORIES.setdefault(recorder, cls()) if known is None else known

    def reset(self) -> None:
        """Torch forgot all that it compiled."""
        with self._changing:
            self._epoch += 1
            self._entries.clear()

    def blamed(self, reasons: Sequence[str], inputs: Inputs) -> list[str]:
        """Of the reasons for which the cache entries did not match, those of the entries that were compiled for the likest call."""
        rated = [
            (reason, self._entries.get(compile_id_in(reason), NO_INPUTS).likeness(inputs))
            for reason in reasons
        ]
        likest = max((like for _, like in rated), default=None)
        return [reason for reason, like in rated if like == likest]

    def note(
        self, function: Function, compile_id: str, kind: str, inputs: Inputs, failed: bool
    ) -> str:
        """A function was compiled; answers one of AGAIN if it was compiled before, and no guard says why again."""
        with self._changing:
            if kind == "first" and compile_id in self._entries:
                self.reset()  # torch counts from the start only after one, which was not heard
            known = self._functions.setdefault(function, _Compiled())
            number = compile_id.rpartition("/")[0]
            again = self._again(function, known, number, kind, inputs)
            known.note(self._epoch, number, inputs, failed)
            self._functions.move_to_end(function)
            self._entries[compile_id] = inputs
            if len(self._functions) > MOST_FUNCTIONS:
                self._functions.popitem(last=False)
            if len(self._entries) > MOST_ENTRIES:
                self._entries.popitem(last=False)
            return again

    def _again(
        self, function: Function, known: _Compiled, number: str, kind: str, inputs: Inputs
    ) -> str:
        if known.epoch < 0 or kind not in ("first", "recompile"):
            return ""
        if kind == "recompile":
            return RESET if known.met_before(self._epoch, inputs) else ""
        if known.epoch != self._epoch or known.layer_before(self._epoch, inputs):
            return RESET
        if number not in known.numbers and function.is_one:
            return NEW_CODE
        return FAILED if inputs.modules in known.failed else ""


def function_of(name: str, file: str, line: int, code: object) -> Function:
    """The function of a code object, or of what a record says where there is none."""
    column = None
    if name.startswith("<") and isinstance(code, CodeType) and hasattr(code, "co_positions"):
        column = next((found[2] for found in code.co_positions() if found[2]), None)
    return Function(name, file, line, column)
