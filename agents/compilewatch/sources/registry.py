"""The sources of this process: each installed once its module is there, polled, and taken back at the end."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from compilewatch.lazy_modules import DEFERRED_INSTALL, DYNAMO_SKIP, require
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.import_hook import ImportHook, fully_imported
from compilewatch.sources import SOURCES, Listed, Source, load

if TYPE_CHECKING:
    from compilewatch.sources.deferred_install import Tripwires

AT_ONCE = "compiled_calls"
"""Looks at calls of what is compiled already, of which nothing else tells."""


class InstalledSources:
    """Knows what each source answered; a source that fails is counted, and the others go on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._hook = ImportHook()
        self._answers: dict[str, tuple[str, str]] = {}
        self._installed: list[Source] = []
        self._unbound: list[Listed] = []
        self._late: list[Listed] = []
        self._context = contextvars.Context()
        """Where `init` was called: torch's options are set by context, and a source that is installed aside looks at them there."""
        self._tripwires: Tripwires | None = None
        self._installing = threading.RLock()

    def install(self, listed: tuple[Listed, ...] = SOURCES, late: bool = False) -> None:
        """Installs each source now, or when the module that it binds is imported. `late`: where that is there already and can wait, the
        agent's thread installs it, or the thread that first needs it."""
        self._unbound = []
        for module in ("torch", "torch._dynamo"):
            self._hook.when_imported(
                module, lambda: None
            )  # how long that takes is a stage of the cold start
        self._hook.when_imported("torch._dynamo.eval_frame", self._skip_frames)
        for one in listed:
            _, name, module = one
            self._answers[name] = ("no", f"{module} is not imported")
            if late and name != AT_ONCE and module and fully_imported(module):
                self._late.append(one)
            elif module:
                self._hook.when_imported(module, lambda one=one: self._install(one))  # type: ignore[misc]
            else:
                self._unbound.append(one)
        if self._late:
            self._context = contextvars.copy_context()
            tripwires: type[Tripwires] = require(DEFERRED_INSTALL).Tripwires
            self._tripwires = tripwires(self._install_late)
            if not self._tripwires.lay():
                self._install_late()

    def when_imported(self, module: str, then: Callable[[], None]) -> None:
        """Calls `then`, which must not raise, when the module is there, until `uninstall`."""
        self._hook.when_imported(module, then)

    def after_fork(self) -> None:
        """In a forked child: a lock that another thread held stays held for ever."""
        self._installing = threading.RLock()

    def _install_late(self) -> None:
        with self._installing:
            if self._tripwires is not None:
                self._tripwires.remove()
            while self._late:
                self._context.copy().run(self._install, self._late.pop(0))
            self._context = contextvars.Context()

    def install_unbound(self) -> None:
        """Installs what can wait, and what binds no module and only polls; the agent's thread does it, so that no start waits for it."""
        self._install_late()
        while self._unbound:
            self._install(self._unbound.pop(0))

    def _install(self, listed: Listed) -> None:
        source: Source | None = None
        try:
            source = load(listed)
            self._answers[source.name] = source.install(self._recorder)
            self._installed.append(source)
        except Exception as error:  # noqa: BLE001 - this runs inside an import of the job
            self._answers[listed[1]] = ("no", f"{type(error).__name__}: {error}"[:200])
            self._recorder.internal_error(error)
            if source is not None:
                self._take_back(source)

    def _skip_frames(self) -> None:
        try:
            require(DYNAMO_SKIP).frames_skip()
        except Exception as error:  # noqa: BLE001 - this runs inside an import of the job
            self._recorder.internal_error(error)

    def poll(self) -> None:
        """Lets each installed source look at what it watches."""
        for source in list(self._installed):
            try:
                changed = source.poll(self._recorder)
                if changed is not None:
                    self._answers[source.name] = changed
            except Exception as error:  # noqa: BLE001 - the next source still gets its turn
                self._recorder.internal_error(error)

    def capabilities(self) -> dict[str, tuple[str, str]]:
        """What each source can see, and why."""
        return dict(self._answers)

    def uninstall(self) -> None:
        """Takes everything back, the last first."""
        self._hook.remove()
        self._late = []
        if self._tripwires is not None:
            self._tripwires.remove()
        for source in reversed(self._installed):
            self._take_back(source)
        self._installed = []
        self._answers = {}

    def _take_back(self, source: Source) -> None:
        try:
            source.uninstall()
        except Exception as error:  # noqa: BLE001 - the others are still to be taken back
            self._recorder.internal_error(error)
