"""What vLLM says of its own cache: an AOT compilation that it loads, one that it cannot load, and the folder of what it compiles."""

from __future__ import annotations

import itertools
import logging
import re
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from compilewatch.identity.vllm_cache_key import VLLM_KEY
from compilewatch.recording.recorder import Recorder
from compilewatch.sources import Answer, Source
from compilewatch.sources.dynamo.scrubber import normal, short_path
from compilewatch.sources.dynamo.user_frames import Place
from compilewatch.sources.inductor.cache_lookups import KEY_LENGTH
from compilewatch.sources.log_filter import LogLines
from compilewatch.wire.messages import Compile

LOGGERS = ("vllm.compilation.decorators", "vllm.compilation.monitor", "vllm.compilation.backends")
NOT_LOADED = "AOT compilation cannot be loaded, vLLM compiles again: "
MAX_FRAMES, MAX_SECONDS = 12, 86_400.0
_TAG = r"^(?:\[(?P<tag>[^\]]*)\] )?"
_LOADED = re.compile(_TAG + r"Directly load AOT compilation from path (?P<path>.+)$")
_FAILED = re.compile(
    _TAG
    + r"(?:Compiling model again due to a load failure from|Cannot load aot compilation from path) (?P<path>\S+), "
    r"(?:reason|error): (?P<reason>.*)$",
    re.DOTALL,
)
_TOOK = re.compile(_TAG + r"torch\.compile (?:took|takes) (?P<seconds>[0-9.]+) s in total$")
_FOLDER = re.compile(_TAG + r"Using cache directory: (?P<folder>.+) for vLLM's torch\.compile$")
_KEY = re.compile(r"torch_aot_compile/([0-9a-f]+)")


class Loaded(NamedTuple):
    """An AOT compilation that was loaded, until vLLM says how long that took."""

    at: float
    path: str
    model: Place | None
    seconds: float | None
    """As the clock says that vLLM has started; None where it has none."""


class VllmLoads(Source):
    """Reads vLLM's log lines where they are made: what they say is the same since its first release with an AOT compilation."""

    name = "vllm_loads"
    module = "vllm.compilation.decorators"

    def __init__(self) -> None:
        self._lines: list[LogLines] = []
        self._loaded: dict[tuple[int, str], Loaded] = {}
        self._numbers = itertools.count()

    def install(self, recorder: Recorder) -> Answer:
        self._recorder = recorder
        if not self._lines:
            self._lines = [LogLines(name, self._hear, recorder) for name in LOGGERS]
        return "yes", ""

    def uninstall(self) -> None:
        lines, self._lines = self._lines, []
        for one in lines:
            one.remove()

    def _hear(self, record: logging.LogRecord) -> None:
        try:
            said = record.getMessage()
        except Exception:  # noqa: BLE001 - the line's own arguments do not fit it: no fault of ours, and no line that we read
            return
        if found := _LOADED.match(said):
            self._note(found["tag"] or "", found["path"])
        elif found := _TOOK.match(said):
            self._took(found["tag"] or "", float(found["seconds"]))
        elif found := _FAILED.match(said):
            model, VLLM_KEY.not_loaded = _model(), True
            self._recorder.finding(
                "aot_load_failed", f"{NOT_LOADED}{normal(found['reason'])}", str(model or "")
            )
        elif found := _FOLDER.match(said):
            VLLM_KEY.note(found["folder"])

    def _note(self, tag: str, path: str) -> None:
        self._loaded[threading.get_ident(), tag] = Loaded(
            time.time(), path, _model(), _since_start()
        )
        self._recorder.report_at_close(
            self.name, self._tell_rest
        )  # outside of its compile mode vLLM does not say how long it took

    def _took(self, tag: str, seconds: float) -> None:
        """The line also ends a compilation: only after a load it is about that."""
        loaded = self._loaded.pop((threading.get_ident(), tag), None)
        if loaded is not None:
            self._tell(loaded._replace(at=time.time(), seconds=seconds))

    def _tell_rest(self) -> None:
        for key in list(self._loaded):
            loaded = self._loaded.pop(key, None)
            if loaded is not None:
                self._tell(loaded)

    def _tell(self, loaded: Loaded) -> None:
        key = _KEY.search(loaded.path)
        took = (
            {}
            if loaded.seconds is None
            else {"total": loaded.seconds, "cache_load": loaded.seconds}
        )
        place = loaded.model or Place("", 0, "")
        self._recorder.compile_finished(
            Compile(
                at=loaded.at,
                id=f"vllm/{next(self._numbers)}",
                kind="first",
                outcome="ok",
                frame=place.function,
                file=place.file,
                line=place.line,
                seconds=took,
                cache={"aot": "hit"},
                key=key[1][:KEY_LENGTH] if key else "",
            )
        )


def _model() -> Place | None:
    """The forward of the model that vLLM loads on this thread, which logs it."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MAX_FRAMES):
        if frame is None:
            return None
        if Path(frame.f_code.co_filename).parts[-3:] == ("vllm", "compilation", "decorators.py"):
            known = frame.f_locals
            code = getattr(
                getattr(type(known.get("model", known.get("self"))), "forward", None),
                "__code__",
                None,
            )
            if code is not None:
                return Place(short_path(code.co_filename), code.co_firstlineno, code.co_name)
        frame = frame.f_back
    return None


def _since_start() -> float | None:
    """Seconds since vLLM began to load, by its own note; releases differ in which clock that is of."""
    started: Any = getattr(
        sys.modules.get("vllm.compilation.monitor"), "torch_compile_start_time", None
    )
    if not isinstance(started, float) or not started:
        return None
    return next(
        (
            round(took, 6)
            for now in (time.time(), time.perf_counter())
            if 0 <= (took := now - started) <= MAX_SECONDS
        ),
        None,
    )
