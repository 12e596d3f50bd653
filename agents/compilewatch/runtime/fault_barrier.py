"""The wall between agent and job: what goes wrong inside is counted, and never raised."""

from __future__ import annotations

from types import TracebackType

from compilewatch.recording.recorder import RECORDER, Recorder


class Guard:
    """Swallows and counts any Exception in its block; KeyboardInterrupt and SystemExit pass."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder = RECORDER) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, Exception):
            self._recorder.internal_error(error)
            return True
        return False
