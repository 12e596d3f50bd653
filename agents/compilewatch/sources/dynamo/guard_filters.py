"""Guard-filter check: finds guards that a program removes with `options={"guard_filter_fn": ...}`.

Without these guards, compiled code also runs for inputs that it was not compiled for, and results
may be wrong."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from compilewatch.identity.compile_config import EXTRA_COMPONENTS
from compilewatch.runtime.torch_internals import BUILD_GUARDS
from compilewatch.sources.dynamo.compilation_metrics import frame_of
from compilewatch.sources.function_source import FunctionSource
from compilewatch.wire.messages import GUARDS_LEFT_OUT

_TORCH_INTERNAL = "torch._dynamo"
"""Module prefix of filters that torch applies itself, such as for ahead-of-time compilation.
Programs choose the filters of `torch.compiler`."""
OWN_FILTER = "a filter of the program's own"


class _ThreadState(threading.local):
    def __init__(self) -> None:
        self.guards: list[Any] = []


class GuardFilters(FunctionSource):
    """Compares the two sets of guards that torch builds for a filter: all guards first, then the
    guards that the filter keeps."""

    name = "guard_filters"
    module = "torch._dynamo.guards"
    function = BUILD_GUARDS
    missing_state = "no"

    def __init__(self) -> None:
        super().__init__()
        self._thread = _ThreadState()

    def on_call(
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
            _TORCH_INTERNAL
        ):
            return
        kept = {id(guard) for guard in guards}
        removed = [guard for guard in before if id(guard) not in kept]
        name = _name(guard_filter_fn)
        EXTRA_COMPONENTS[GUARDS_LEFT_OUT] = name
        if removed:
            kinds = ", ".join(sorted({_kind(guard) for guard in removed}))
            self._recorder.record_finding(
                "guards_left_out",
                f"{name} leaves out {kinds}",
                frame_of(None, {"code": code}).where,
                len(removed),
            )


def _name(guard_filter: Any) -> str:
    """Return the name of a filter of torch. The name of a program's own filter stays in the
    process."""
    name = getattr(guard_filter, "__name__", None)
    return (
        str(name)
        if name and getattr(guard_filter, "__module__", "") == "torch.compiler"
        else OWN_FILTER
    )


def _kind(guard: Any) -> str:
    try:
        return str(guard.create_fn_name())
    except Exception:  # noqa: BLE001 - unknown in another torch
        return "guards"
