"""Why a compilation was not in the cache: the first component that differs from the last run of the model on this host."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from compilewatch.config import Config
from compilewatch.identity.compile_config import OPTIONS, cache_folder, components
from compilewatch.identity.vllm_cache_key import VLLM_KEY
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.private_files import FolderError
from compilewatch.sources import Answer, Source
from compilewatch.sources.inductor.cache_key_diff import cause_of
from compilewatch.sources.inductor.cache_key_parts import read_late
from compilewatch.sources.inductor.cache_lookups import Asked
from compilewatch.sources.inductor.run_history import DamagedRun, Graph, LastRun, Run
from compilewatch.sources.inductor.triton_recompiles import compiled_again, sentence
from compilewatch.wire.cache_miss_causes import ACCESS, NO_EARLIER_RUN, READ_ONLY
from compilewatch.wire.messages import Compile

_MAX_WAITING = 500
_CAUSES: weakref.WeakKeyDictionary[Recorder, MissCauses] = weakref.WeakKeyDictionary()


class Noted(NamedTuple):
    """A compilation that asked the caches."""

    compile: Compile
    asked: Asked
    where: str

    @property
    def frame(self) -> str:
        """File and function; the line moves whenever somebody edits above it."""
        return f"{self.compile.file}:{self.compile.frame}"


class MissCauses:
    """One per recorder: compilations are noted by the threads that compile, and explained on the agent's thread."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._waiting: deque[Noted] = deque(maxlen=_MAX_WAITING)
        self._pid = os.getpid()
        self._last_run: LastRun | None = None
        self._earlier: Run | None = None
        self._own = Run()
        self.problem = "what the last run compiled is not kept"
        """Why causes cannot be known; empty where they can."""

    @classmethod
    def of(cls, recorder: Recorder) -> MissCauses:
        known = _CAUSES.get(recorder)
        return _CAUSES.setdefault(recorder, cls(recorder)) if known is None else known

    def keep_in(self, config: Config) -> None:
        """Reads what earlier runs of the model compiled; from now on this one is kept there too."""
        self._last_run, self._earlier, self._own, self.problem = None, None, Run(), ""
        try:
            self._last_run = LastRun.of(config)
            self._earlier = self._last_run.read()
        except DamagedRun as error:
            self.problem = str(error)
        except OSError as error:
            self._last_run = None
            self.problem = f"what the last run compiled cannot be read: {_words(error)}"

    def note(self, compile: Compile, asked: Asked, where: str) -> None:
        """A compilation is over; on any thread."""
        if asked.answers:
            if os.getpid() != self._pid:
                # What a forked child finds here is its parent's to tell.
                self._waiting.clear()
                self._pid = os.getpid()
            self._waiting.append(Noted(compile, asked, where))

    def tell(self) -> None:
        """Explains what was noted, and keeps what this run compiled; on the agent's thread, before a window closes."""
        recorder = self._recorder()
        if not self._waiting or recorder is None or os.getpid() != self._pid:
            return
        now = components()
        while self._waiting:
            noted = self._waiting.popleft()
            # torch tried, which says more than the folder's own bits: a disk may be full. It holds for this graph alone.
            mine = {**now, ACCESS: READ_ONLY} if _unwritten(noted.asked) else now
            self._tell_one(recorder, noted, mine)
            self._remember(noted, mine)
        self._keep(now)

    def _tell_one(self, recorder: Recorder, noted: Noted, now: Mapping[str, str]) -> None:
        answers, seconds = noted.asked.answers, noted.compile.seconds.get("total", 0.0)
        for reason in noted.asked.bypasses:
            recorder.finding(
                "cache_miss", f"cache bypassed: {reason}", noted.where, seconds=seconds
            )
        if "miss" in (answers.get("fx"), answers.get("aot")):
            noted.compile.miss = cause = cause_of(noted.asked, noted.frame, self._earlier, now)
            # Without an earlier run every frame of a start misses for the same reason: that is one finding, not one per frame.
            recorder.finding(
                "cache_miss", cause, "" if cause == NO_EARLIER_RUN else noted.where, seconds=seconds
            )
        kernels = compiled_again(noted.compile, os.environ)
        if kernels:
            before = None if self._earlier is None else self._earlier.components
            recorder.finding(
                "cache_miss",
                sentence(kernels, now, before),
                noted.where,
                seconds=noted.compile.seconds["triton"],
            )

    def _remember(self, noted: Noted, now: dict[str, str]) -> None:
        for lookup in noted.asked.lookups:
            if lookup.key:
                self._own.asked(lookup.key)
            parts = (
                lookup.parts.read() if lookup.parts is not None and lookup.cache == "fx" else None
            )
            if parts is not None:
                self._own.add(
                    Graph(
                        noted.frame, lookup.backward, lookup.key, parts.settings_id, parts.own, now
                    ),
                    parts.settings,
                )

    def _keep(self, now: dict[str, str]) -> None:
        if self._last_run is None:
            return
        self._own.components, self._own.engine = now, dict(VLLM_KEY.read())
        try:
            self._last_run.write(self._own)
        except OSError as error:
            self._last_run = None
            self.problem = f"what this run compiled cannot be kept: {_words(error)}"


class Caches(Source):
    """Says in the capability table what can be seen of the caches; the compilations carry what is seen."""

    name = "caches"
    module = "torch._dynamo.utils"

    def install(self, recorder: Recorder) -> Answer:
        self._causes = MissCauses.of(recorder)
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Answer:
        """Reads what compilations had no time to read."""
        read_late()
        OPTIONS.prepare()
        OPTIONS.read()
        problem = self._causes.problem
        return ("partly", f"no causes of misses: {problem}") if problem else ("yes", "")


def _unwritten(asked: Asked) -> bool:
    """Whether the folder did not take the graph; torch counts alike what a remote cache did not take after it."""
    if not asked.unwritten:
        return False
    folder = cache_folder(os.environ)
    return not all(
        _holds(folder, lookup.key)
        for lookup in asked.lookups
        if lookup.cache == "fx" and lookup.key
    )


def _holds(folder: str, key: str) -> bool:
    entry = Path(folder) / "fxgraph" / key[1:3] / key
    try:
        return any(not name.startswith(".") for name in os.listdir(entry))  # noqa: PTH208 - a name is all that is asked
    except OSError:
        return False


def _words(error: OSError) -> str:
    return str(error) if isinstance(error, FolderError) else error.strerror or type(error).__name__
