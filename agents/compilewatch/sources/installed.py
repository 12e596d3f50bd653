"""The sources of this process: each installed once its module is there, polled, and taken back at the end."""

from __future__ import annotations

from compilewatch.frames import frames_skip
from compilewatch.hooks import ImportHook
from compilewatch.recorder import Recorder
from compilewatch.sources import SOURCES, Source, load


class InstalledSources:
    """Knows what each source answered; a source that fails is counted, and the others go on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._hook = ImportHook()
        self._answers: dict[str, tuple[str, str]] = {}
        self._installed: list[Source] = []

    def install(self, entries: tuple[str, ...] = SOURCES) -> None:
        """Installs each source now, or when the module that it binds is imported."""
        self._hook.when_imported("torch._dynamo.eval_frame", self._skip_frames)
        for entry in entries:
            try:
                source = load(entry)
            except Exception as error:  # noqa: BLE001 - one source less
                self._answers[entry.split(":")[0]] = ("no", f"{type(error).__name__}: {error}"[:200])
                self._recorder.internal_error(error)
                continue
            self._answers[source.name] = ("no", f"{source.module} is not imported")
            if source.module:
                self._hook.when_imported(source.module, lambda source=source: self._install(source))  # type: ignore[misc]
            else:
                self._install(source)

    def _install(self, source: Source) -> None:
        try:
            self._answers[source.name] = source.install(self._recorder)
            self._installed.append(source)
        except Exception as error:  # noqa: BLE001 - this runs inside an import of the job
            self._answers[source.name] = ("no", f"{type(error).__name__}: {error}"[:200])
            self._recorder.internal_error(error)
            self._take_back(source)

    def _skip_frames(self) -> None:
        try:
            frames_skip()
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
        for source in reversed(self._installed):
            self._take_back(source)
        self._installed = []
        self._answers = {}

    def _take_back(self, source: Source) -> None:
        try:
            source.uninstall()
        except Exception as error:  # noqa: BLE001 - the others are still to be taken back
            self._recorder.internal_error(error)
