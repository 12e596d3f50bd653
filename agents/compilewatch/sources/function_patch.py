"""Function patch: a reversible monkey patch of one torch function (decorator pattern).

The wrapper calls an observer with the arguments, then the original function, then optionally a
second observer. Source: the pattern of `wrapt.wrap_function_wrapper`, without its dependency.

Invariants:
- Arguments, result and exception of the original function pass unchanged. The original function
  runs exactly once for each call.
- An exception of an observer is counted and never reaches the job. After `MAX_FAULTS` exceptions
  the wrapper only forwards calls: torch then calls the function in an unknown way.
- `unbind` restores the original only if the name still refers to the wrapper. If other code
  wrapped the wrapper later, restoring would remove that code too. The wrapper then stays in the
  chain and only forwards calls.
- The job calls a patched function on any thread. The wrapper takes no lock: it reads two attributes
  that only `bind`, `unbind` and the fault counter write. A race costs at most one unobserved call.

Cost: one Python call and two attribute reads for each call, plus the observers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import TorchName

MAX_FAULTS = 5
"""Number of exceptions after which the wrapper stops calling the observer: torch then calls the
function in an unknown way."""
_CACHE_METHODS = ("cache_clear", "cache_info", "cache_parameters")


class FunctionPatch:
    """Calls an observer before each call of a torch function. Exceptions of the observer are
    counted and never reach the job."""

    def __init__(
        self,
        name: TorchName,
        observe: Callable[..., None],
        recorder: Recorder,
        after: Callable[[], None] | None = None,
    ) -> None:
        """`observe` receives the arguments of each call. `after` runs when torch's function returns
        or raises."""
        self._name = name
        self._observe = observe
        self._after = after
        self._recorder = recorder
        self._wrapper: Callable[..., Any] | None = None
        self._original: Callable[..., Any] | None = None
        self._faults = 0
        self._last_fault = ""
        self.is_listening = False
        """True if the wrapper calls the observer. Code that replaced the name later may or may not
        still call the wrapper."""

    def bind(self) -> None:
        """Patch the name if torch has a callable of this name. A second call has no effect."""
        original = self._name.find()
        if self._wrapper is None and callable(original):
            self._original, self._wrapper = original, self._wrap(original)
            self._name.put(self._wrapper)
            self.is_listening = True

    def unbind(self) -> None:
        """Restore the original function if the name still refers to the wrapper. Otherwise the
        wrapper stays in the chain of later patches and only forwards calls."""
        self.is_listening = False
        if self._wrapper is not None and self.is_in_place:
            self._name.put(self._original)
        self._wrapper = self._original = None

    def matches(self, thing: Any) -> bool:
        """True if `thing` is the wrapper or the original function."""
        return thing is not None and thing in (self._wrapper, self._original)

    @property
    def is_bound(self) -> bool:
        """True if torch has the function and the function is patched."""
        return self._wrapper is not None

    @property
    def is_in_place(self) -> bool:
        """True if the name still refers to the wrapper."""
        return self._wrapper is not None and self._name.find() is self._wrapper

    @property
    def problem(self) -> str:
        """Reason why some calls may be unobserved; empty if all calls are observed."""
        if self._wrapper is None:
            return self._name.problem()
        if not self.is_listening:
            return f"{self._name.short_name} is called in an unknown way ({self._last_fault})"
        return "" if self.is_in_place else f"{self._name.short_name} was replaced by other code"

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        observe, after = self._observe, self._after

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            is_observed = self.is_listening and self._wrapper is wrapper
            if is_observed:
                try:
                    observe(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - the job's call must continue
                    self._count_fault(error)
                    is_observed = False
            if not is_observed or after is None:
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                try:
                    after()
                except Exception as error:  # noqa: BLE001 - the job's call must continue
                    self._count_fault(error)

        for name in _CACHE_METHODS:
            if hasattr(original, name):
                setattr(wrapper, name, getattr(original, name))
        return wrapper

    def _count_fault(self, error: Exception) -> None:
        self._recorder.record_internal_error(error)
        self._faults += 1
        self._last_fault = f"{type(error).__name__}: {error}"[:120]
        self.is_listening = self.is_listening and self._faults < MAX_FAULTS
