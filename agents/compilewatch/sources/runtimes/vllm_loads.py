"""vLLM loads: AOT compilations that vLLM loads or fails to load, as its log reports them."""

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
from compilewatch.sources import Capability, Source
from compilewatch.sources.dynamo.scrubber import normalize, shorten_path
from compilewatch.sources.dynamo.user_frames import Place
from compilewatch.sources.inductor.cache_lookups import KEY_LENGTH
from compilewatch.sources.log_filter import LogListener
from compilewatch.wire.messages import Compile

LOGGERS = ("vllm.compilation.decorators", "vllm.compilation.monitor", "vllm.compilation.backends")
NOT_LOADED = "AOT compilation cannot be loaded, vLLM compiles again: "
MAX_FRAMES, MAX_SECONDS = 12, 86_400.0
_TAG = r"^(?:\[(?P<tag>[^\]]*)\] )?"
_LOADED = re.compile(_TAG + r"Directly load AOT compilation from path (?P<path>.+)$")
_FAILED = re.compile(
    _TAG
    + r"(?:Compiling model again due to a load failure from|Cannot load aot compilation from path) "
    r"(?P<path>\S+), "
    r"(?:reason|error): (?P<reason>.*)$",
    re.DOTALL,
)
_TOOK = re.compile(_TAG + r"torch\.compile (?:took|takes) (?P<seconds>[0-9.]+) s in total$")
_FOLDER = re.compile(_TAG + r"Using cache directory: (?P<folder>.+) for vLLM's torch\.compile$")
_KEY = re.compile(r"torch_aot_compile/([0-9a-f]+)")


class AotLoad(NamedTuple):
    """A loaded AOT compilation, until vLLM logs the duration."""

    at: float
    path: str
    model: Place | None
    seconds: float | None
    """Seconds since vLLM started to load; None if vLLM has not noted its start."""


class VllmLoads(Source):
    """Reads vLLM's log; its texts are unchanged since the first release with AOT compilation."""

    name = "vllm_loads"
    module = "vllm.compilation.decorators"

    def __init__(self) -> None:
        self._lines: list[LogListener] = []
        self._loaded: dict[tuple[int, str], AotLoad] = {}
        self._numbers = itertools.count()

    def install(self, recorder: Recorder) -> Capability:
        self._recorder = recorder
        if not self._lines:
            self._lines = [LogListener(name, self._on_record, recorder) for name in LOGGERS]
        return "yes", ""

    def uninstall(self) -> None:
        lines, self._lines = self._lines, []
        for one in lines:
            one.remove()

    def _on_record(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - the record's arguments do not match its text
            return
        if found := _LOADED.match(message):
            self._note_load(found["tag"] or "", found["path"])
        elif found := _TOOK.match(message):
            self._report_duration(found["tag"] or "", float(found["seconds"]))
        elif found := _FAILED.match(message):
            model, VLLM_KEY.load_failed = _model_place(), True
            self._recorder.record_finding(
                "aot_load_failed", f"{NOT_LOADED}{normalize(found['reason'])}", str(model or "")
            )
        elif found := _FOLDER.match(message):
            VLLM_KEY.note(found["folder"])

    def _note_load(self, tag: str, path: str) -> None:
        self._loaded[threading.get_ident(), tag] = AotLoad(
            time.time(), path, _model_place(), _seconds_since_start()
        )
        # Outside its compile mode vLLM logs no duration: the window's end reports the load then.
        self._recorder.report_at_rotation(self.name, self._report_rest)

    def _report_duration(self, tag: str, seconds: float) -> None:
        """Reports a load with its duration. Without a load the record belongs to a compilation."""
        loaded = self._loaded.pop((threading.get_ident(), tag), None)
        if loaded is not None:
            self._report(loaded._replace(at=time.time(), seconds=seconds))

    def _report_rest(self) -> None:
        for key in list(self._loaded):
            loaded = self._loaded.pop(key, None)
            if loaded is not None:
                self._report(loaded)

    def _report(self, loaded: AotLoad) -> None:
        key = _KEY.search(loaded.path)
        took = (
            {}
            if loaded.seconds is None
            else {"total": loaded.seconds, "cache_load": loaded.seconds}
        )
        place = loaded.model or Place("", 0, "")
        self._recorder.record_compile(
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


def _model_place() -> Place | None:
    """The `forward` of the model that vLLM loads, from the frames of the logging thread."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MAX_FRAMES):
        if frame is None:
            return None
        if Path(frame.f_code.co_filename).parts[-3:] == ("vllm", "compilation", "decorators.py"):
            frame_locals = frame.f_locals
            code = getattr(
                getattr(type(frame_locals.get("model", frame_locals.get("self"))), "forward", None),
                "__code__",
                None,
            )
            if code is not None:
                return Place(shorten_path(code.co_filename), code.co_firstlineno, code.co_name)
        frame = frame.f_back
    return None


def _seconds_since_start() -> float | None:
    """Seconds since vLLM started to load; its releases note the start with different clocks."""
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
