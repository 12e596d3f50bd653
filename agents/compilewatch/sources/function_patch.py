"""A callable of torch's with ours in front of it, for as long as that works and is wanted."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import TorchName

MAX_FAULTS = 5
"""So many failures mean that torch calls the name in another way than we know: then we stop listening; the rest goes on."""
_OF_CACHED = ("cache_clear", "cache_info", "cache_parameters")


class Binding:
    """Hears each call of a torch function before torch's own code runs; what goes wrong in `hear` is counted and never reaches the job."""

    def __init__(
        self,
        name: TorchName,
        hear: Callable[..., None],
        recorder: Recorder,
        after: Callable[[], None] | None = None,
    ) -> None:
        """`hear` gets the arguments of each call; `after` is called when torch's own code is through, whatever came of it."""
        self._name = name
        self._hear = hear
        self._after = after
        self._recorder = recorder
        self._ours: Callable[..., Any] | None = None
        self._theirs: Callable[..., Any] | None = None
        self._faults = 0
        self._last_fault = ""
        self.listens = False
        """Whether calls are heard; a name that someone bound after us may or may not still lead to us."""

    def bind(self) -> None:
        """Takes the name, if torch has it and it can be called; a second time changes nothing."""
        theirs = self._name.find()
        if self._ours is None and callable(theirs):
            self._theirs, self._ours = theirs, self._wrapper(theirs)
            self._name.put(self._ours)
            self.listens = True

    def unbind(self) -> None:
        """Gives the name back. Someone who wrapped us later still calls us: then we stay in the chain, silent."""
        self.listens = False
        if self._ours is not None and self.in_place:
            self._name.put(self._theirs)
        self._ours = self._theirs = None

    def leads_to(self, thing: Any) -> bool:
        """Whether the thing is what we took, or what we put in its place."""
        return thing is not None and thing in (self._ours, self._theirs)

    @property
    def bound(self) -> bool:
        """Whether torch has the name, so that we took it."""
        return self._ours is not None

    @property
    def in_place(self) -> bool:
        """Whether the name still leads to us first."""
        return self._ours is not None and self._name.find() is self._ours

    @property
    def problem(self) -> str:
        """Why not everything is heard; empty if it is."""
        if self._ours is None:
            return self._name.problem()
        if not self.listens:
            return f"{self._name.short} is called in an unknown way ({self._last_fault})"
        return "" if self.in_place else f"{self._name.short} was replaced by other code"

    def _wrapper(self, theirs: Callable[..., Any]) -> Callable[..., Any]:
        hear, after = self._hear, self._after

        @functools.wraps(theirs)
        def ours(*args: Any, **kwargs: Any) -> Any:
            heard = self.listens and self._ours is ours
            if heard:
                try:
                    hear(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - this runs inside a call of the job, which goes on
                    self._failed(error)
                    heard = False
            if not heard or after is None:
                return theirs(*args, **kwargs)
            try:
                return theirs(*args, **kwargs)
            finally:
                try:
                    after()
                except Exception as error:  # noqa: BLE001 - as above
                    self._failed(error)

        for name in _OF_CACHED:
            if hasattr(theirs, name):
                setattr(ours, name, getattr(theirs, name))
        return ours

    def _failed(self, error: Exception) -> None:
        self._recorder.internal_error(error)
        self._faults += 1
        self._last_fault = f"{type(error).__name__}: {error}"[:120]
        self.listens = self.listens and self._faults < MAX_FAULTS
