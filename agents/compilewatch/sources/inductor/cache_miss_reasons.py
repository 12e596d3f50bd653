"""Cache miss reasons: the first component that differs from the model's last run on this host."""

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
from compilewatch.sources import Capability, Source
from compilewatch.sources.inductor.cache_key_diff import cause_of
from compilewatch.sources.inductor.cache_key_parts import parse_queued
from compilewatch.sources.inductor.cache_lookups import CacheAnswers
from compilewatch.sources.inductor.run_history import DamagedHistory, Graph, Run, RunHistory
from compilewatch.sources.inductor.triton_recompiles import (
    count_recompiled_kernels,
    describe_recompile,
)
from compilewatch.wire.cache_miss_causes import ACCESS, NO_EARLIER_RUN, READ_ONLY
from compilewatch.wire.messages import Compile

_MAX_WAITING = 500
_CAUSES: weakref.WeakKeyDictionary[Recorder, MissCauses] = weakref.WeakKeyDictionary()


class RecordedKey(NamedTuple):
    """A compilation with its cache answers."""

    compile: Compile
    asked: CacheAnswers
    where: str

    @property
    def frame(self) -> str:
        """File and function, without the line, which every edit above it moves."""
        return f"{self.compile.file}:{self.compile.frame}"


class MissCauses:
    """Explains misses; one instance per recorder.

    Compiling threads queue their compilations, and the agent's thread explains them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._waiting: deque[RecordedKey] = deque(maxlen=_MAX_WAITING)
        self._pid = os.getpid()
        self._last_run: RunHistory | None = None
        self._earlier: Run | None = None
        self._own = Run()
        self.problem = "the compile history of earlier runs is not kept"
        """The reason why causes are unknown; empty if they are known."""

    @classmethod
    def of(cls, recorder: Recorder) -> MissCauses:
        known = _CAUSES.get(recorder)
        return _CAUSES.setdefault(recorder, cls(recorder)) if known is None else known

    def open_history(self, config: Config) -> None:
        """Reads the compile history of the model, and stores this run in it from now on."""
        self._last_run, self._earlier, self._own, self.problem = None, None, Run(), ""
        try:
            self._last_run = RunHistory.open(config)
            self._earlier = self._last_run.read()
        except DamagedHistory as error:
            self.problem = str(error)
        except OSError as error:
            self._last_run = None
            self.problem = f"the compile history of the last run cannot be read: {_words(error)}"

    def queue(self, compile: Compile, asked: CacheAnswers, where: str) -> None:
        """Queues a finished compilation; on any thread."""
        if asked.answers:
            if os.getpid() != self._pid:
                # The parent reports the compilations that a forked child inherits.
                self._waiting.clear()
                self._pid = os.getpid()
            self._waiting.append(RecordedKey(compile, asked, where))

    def explain_queued(self) -> None:
        """Explains the queued compilations and stores this run.

        Runs on the agent's thread, before a reporting window closes."""
        recorder = self._recorder()
        if not self._waiting or recorder is None or os.getpid() != self._pid:
            return
        now = components()
        while self._waiting:
            recorded = self._waiting.popleft()
            # A failed write of torch is stronger evidence than the folder's mode bits: the disk may
            # be full. It applies to this graph alone.
            mine = {**now, ACCESS: READ_ONLY} if _failed_to_write(recorded.asked) else now
            self._explain(recorder, recorded, mine)
            self._remember(recorded, mine)
        self._store_run(now)

    def _explain(self, recorder: Recorder, recorded: RecordedKey, now: Mapping[str, str]) -> None:
        answers, compile = recorded.asked.answers, recorded.compile
        seconds = compile.seconds.get("total", 0.0)
        for reason in recorded.asked.bypasses:
            recorder.record_finding(
                "cache_miss", f"cache bypassed: {reason}", recorded.where, seconds=seconds
            )
        if "miss" in (answers.get("fx"), answers.get("aot")):
            compile.miss = cause = cause_of(recorded.asked, recorded.frame, self._earlier, now)
            # Without an earlier run every frame misses for the same reason: one finding in all.
            recorder.record_finding(
                "cache_miss",
                cause,
                "" if cause == NO_EARLIER_RUN else recorded.where,
                seconds=seconds,
            )
        kernels = count_recompiled_kernels(compile, os.environ)
        if kernels:
            before = None if self._earlier is None else self._earlier.components
            recorder.record_finding(
                "cache_miss",
                describe_recompile(kernels, now, before),
                recorded.where,
                seconds=compile.seconds["triton"],
            )

    def _remember(self, recorded: RecordedKey, now: dict[str, str]) -> None:
        for lookup in recorded.asked.lookups:
            if lookup.key:
                self._own.add_key(lookup.key)
            parts = (
                lookup.parts.read() if lookup.parts is not None and lookup.cache == "fx" else None
            )
            if parts is not None:
                self._own.add(
                    Graph(
                        recorded.frame,
                        lookup.backward,
                        lookup.key,
                        parts.settings_id,
                        parts.own,
                        now,
                    ),
                    parts.settings,
                )

    def _store_run(self, now: dict[str, str]) -> None:
        if self._last_run is None:
            return
        self._own.components, self._own.engine = now, dict(VLLM_KEY.read())
        try:
            self._last_run.write(self._own)
        except OSError as error:
            self._last_run = None
            self.problem = f"the compile history of this run cannot be stored: {_words(error)}"


class CacheCapability(Source):
    """Reports the capability of cache answers; the compilations carry the answers."""

    name = "caches"
    module = "torch._dynamo.utils"

    def install(self, recorder: Recorder) -> Capability:
        self._causes = MissCauses.of(recorder)
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Capability:
        """Parses the key lines that compilations queued."""
        parse_queued()
        OPTIONS.prepare()
        OPTIONS.read()
        problem = self._causes.problem
        return ("partly", f"no causes of misses: {problem}") if problem else ("yes", "")


def _failed_to_write(asked: CacheAnswers) -> bool:
    """True if the write into the folder failed; torch also counts failed remote writes."""
    if not asked.has_failed_write:
        return False
    folder = cache_folder(os.environ)
    return not all(
        _has_entry(folder, lookup.key)
        for lookup in asked.lookups
        if lookup.cache == "fx" and lookup.key
    )


def _has_entry(folder: str, key: str) -> bool:
    entry = Path(folder) / "fxgraph" / key[1:3] / key
    try:
        return any(not name.startswith(".") for name in os.listdir(entry))  # noqa: PTH208
    except OSError:
        return False


def _words(error: OSError) -> str:
    return str(error) if isinstance(error, FolderError) else error.strerror or type(error).__name__
