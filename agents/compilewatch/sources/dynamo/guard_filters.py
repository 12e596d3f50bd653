"""Guards that a program leaves out, by `options={"guard_filter_fn": ...}`: inputs that its code does not fit are answered by it all the
same, and what comes out may be wrong."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from compilewatch.identity.compile_config import NOTED
from compilewatch.runtime.torch_internals import BUILD_GUARDS
from compilewatch.sources.dynamo.compilation_metrics import frame_of
from compilewatch.sources.function_source import FunctionSource
from compilewatch.wire.messages import GUARDS_LEFT_OUT

_TORCHS_OWN = "torch._dynamo"
"""Filters of torch's own, as for what it compiles ahead of time; those of `torch.compiler` are for programs to choose."""
OWN_FILTER = "a filter of the program's own"


class _Thread(threading.local):
    def __init__(self) -> None:
        self.guards: list[Any] = []


class GuardFilters(FunctionSource):
    """Torch builds the guards twice where there is a filter: all of them for the filter to choose from, and then those that it keeps."""

    name = "guard_filters"
    module = "torch._dynamo.guards"
    function = BUILD_GUARDS
    without = "no"

    def __init__(self) -> None:
        super().__init__()
        self._thread = _Thread()

    def hear(
        self,
        _: Any,
        guards: Sequence[Any],
        __: Any,
        code: Any,
        *___: Any,
        guard_filter_fn: Any = ...,
        **____: Any,
    ) -> None:
        if guard_filter_fn is ...:
            self._thread.guards = list(guards)
            return
        before, self._thread.guards = self._thread.guards, []
        if guard_filter_fn is None or str(getattr(guard_filter_fn, "__module__", "")).startswith(
            _TORCHS_OWN
        ):
            return
        kept = {id(guard) for guard in guards}
        dropped = [guard for guard in before if id(guard) not in kept]
        name = _name(guard_filter_fn)
        NOTED[GUARDS_LEFT_OUT] = name
        if dropped:
            kinds = ", ".join(sorted({_kind(guard) for guard in dropped}))
            self._recorder.finding(
                "guards_left_out",
                f"{name} leaves out {kinds}",
                frame_of(None, {"code": code}).where,
                len(dropped),
            )


def _name(chosen: Any) -> str:
    """Torch's own name for it; what the program calls a filter of its own stays in the process."""
    name = getattr(chosen, "__name__", None)
    return (
        str(name) if name and getattr(chosen, "__module__", "") == "torch.compiler" else OWN_FILTER
    )


def _kind(guard: Any) -> str:
    try:
        return str(guard.create_fn_name())
    except Exception:  # noqa: BLE001 - another torch may name it otherwise
        return "guards"
