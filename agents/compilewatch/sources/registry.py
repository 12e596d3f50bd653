"""Source registry at run time: installs, polls and uninstalls the sources of this process."""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from compilewatch.lazy_modules import DEFERRED_INSTALL, DYNAMO_SKIP, require
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.import_hook import ImportHook, is_fully_imported
from compilewatch.sources import SOURCES, Source, SourceEntry, load

if TYPE_CHECKING:
    from compilewatch.sources.deferred_install import DeferredInstall

IMMEDIATE_SOURCE = "compiled_calls"
"""Installed immediately, also if torch is already imported: only this source observes calls of
code that is already compiled."""


class InstalledSources:
    """Holds the sources and their capabilities. A failure of one source is counted and does not
    affect the other sources.

    The import hook calls `_install` on the importing thread; `poll` and `install_unbound` run on
    the agent's thread. `_installing` serialises the deferred installation, which both kinds of
    thread can start."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._hook = ImportHook()
        self._answers: dict[str, tuple[str, str]] = {}
        self._installed: list[Source] = []
        self._poll_entries: list[SourceEntry] = []
        self._deferred_entries: list[SourceEntry] = []
        self._context = contextvars.Context()
        """Context of the caller of `init`. Torch keeps its options by context; a source that
        another thread installs must read the options of the caller."""
        self._deferred_install: DeferredInstall | None = None
        self._installing = threading.RLock()

    def install(self, entries: tuple[SourceEntry, ...] = SOURCES, late: bool = False) -> None:
        """Install each source now, or when the module that the source patches is imported.

        With `late`, a source whose module is already imported is deferred: the agent's thread
        installs it, or the first thread that needs it."""
        self._poll_entries = []
        for module in ("torch", "torch._dynamo"):
            # The hook times these imports: they are stages of the cold start.
            self._hook.when_imported(module, lambda: None)
        self._hook.when_imported("torch._dynamo.eval_frame", self._skip_frames)
        for entry in entries:
            _, name, module = entry
            self._answers[name] = ("no", f"{module} is not imported")
            if late and name != IMMEDIATE_SOURCE and module and is_fully_imported(module):
                self._deferred_entries.append(entry)
            elif module:
                self._hook.when_imported(module, functools.partial(self._install, entry))
            else:
                self._poll_entries.append(entry)
        if self._deferred_entries:
            self._context = contextvars.copy_context()
            deferred_install: type[DeferredInstall] = require(DEFERRED_INSTALL).DeferredInstall
            self._deferred_install = deferred_install(self._install_deferred)
            if not self._deferred_install.wrap_functions():
                self._install_deferred()

    def when_imported(self, module: str, then: Callable[[], None]) -> None:
        """Call `then` when the module is imported, until `uninstall`; `then` must not raise."""
        self._hook.when_imported(module, then)

    def after_fork(self) -> None:
        """Replace the lock in a forked child: another thread of the parent may hold it."""
        self._installing = threading.RLock()

    def _install_deferred(self) -> None:
        with self._installing:
            if self._deferred_install is not None:
                self._deferred_install.remove()
            while self._deferred_entries:
                self._context.copy().run(self._install, self._deferred_entries.pop(0))
            self._context = contextvars.Context()

    def install_unbound(self) -> None:
        """Install the deferred sources and the sources that patch no module and only poll. The
        agent's thread calls this, so that the start of the job does not wait."""
        self._install_deferred()
        while self._poll_entries:
            self._install(self._poll_entries.pop(0))

    def _install(self, entry: SourceEntry) -> None:
        source: Source | None = None
        try:
            source = load(entry)
            self._answers[source.name] = source.install(self._recorder)
            self._installed.append(source)
        except Exception as error:  # noqa: BLE001 - runs inside an import of the job
            self._answers[entry[1]] = ("no", f"{type(error).__name__}: {error}"[:200])
            self._recorder.record_internal_error(error)
            if source is not None:
                self._uninstall(source)

    def _skip_frames(self) -> None:
        try:
            require(DYNAMO_SKIP).skip_frames()
        except Exception as error:  # noqa: BLE001 - runs inside an import of the job
            self._recorder.record_internal_error(error)

    def poll(self) -> None:
        """Poll each installed source and update its capability."""
        for source in list(self._installed):
            try:
                changed = source.poll(self._recorder)
                if changed is not None:
                    self._answers[source.name] = changed
            except Exception as error:  # noqa: BLE001 - the next source must still be polled
                self._recorder.record_internal_error(error)

    def capabilities(self) -> dict[str, tuple[str, str]]:
        """Capability of each source, with its reason."""
        return dict(self._answers)

    def uninstall(self) -> None:
        """Uninstall all sources, in reverse order of installation."""
        self._hook.remove()
        self._deferred_entries = []
        if self._deferred_install is not None:
            self._deferred_install.remove()
        for source in reversed(self._installed):
            self._uninstall(source)
        self._installed = []
        self._answers = {}

    def _uninstall(self, source: Source) -> None:
        try:
            source.uninstall()
        except Exception as error:  # noqa: BLE001 - the other sources must still be uninstalled
            self._recorder.record_internal_error(error)
