"""Real torch on CPU with the sources installed, and a recorder that keeps their reports."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from compilewatch.recording.recorder import RECORDER, Recorder
from compilewatch.sources import SOURCES, Capability, Source, load
from compilewatch.wire.messages import Compile, Fact, Finding, Report

BOUND = (
    "torch._dynamo.utils",
    "torch._dynamo.convert_frame",
    "torch._dynamo.eval_frame",
    "torch._dynamo.decorators",
    "torch._inductor.codecache",
    "torch._inductor.graph",
    "torch._inductor.cudagraph_utils",
)
HERE = (
    "compilations",
    "precompiled_headers",
    "recompile_limit",
    "skipped_frames",
    "cache_entries",
    "eager_switches",
    "fallbacks",
    "compiled_calls",
    "compile_requests",
    "cuda_graph_skips",
    "cuda_graph_partitions",
)
"""Keys in the capability table."""


class Seen:
    """The sources of compile facts, installed, and their records since the last look."""

    def __init__(self, recorder: Recorder | None = None, here: tuple[str, ...] = HERE) -> None:
        self.recorder = recorder or Recorder()
        self.recorder.start()
        self.sources: list[Source] = [load(listed) for listed in SOURCES if listed[1] in here]
        self.answers: dict[str, Capability] = {
            source.name: source.install(self.recorder) for source in self.sources
        }

    def look(self) -> Report:
        """Closes the window; an internal error of the agent fails the test that caused it."""
        assert self.recorder.internal_error_count == 0, self.recorder.last_error
        return self.look_despite_errors()

    def look_despite_errors(self) -> Report:
        return self.recorder.rotate(1, 0.0, 1.0)

    def poll(self) -> None:
        for source in self.sources:
            source.poll(self.recorder)

    def compiles(self) -> list[Compile]:
        return self.look().compiles

    def uninstall(self) -> None:
        for source in self.sources:
            source.uninstall()


@contextmanager
def torch_unused() -> Iterator[None]:
    """A torch that has compiled nothing, with its default settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in BOUND:
            importlib.import_module(name)
        import torch

        torch._dynamo.reset()
        with torch._dynamo.config.patch(), torch._inductor.config.patch():
            yield
        torch._dynamo.reset()


@pytest.fixture(autouse=True)
def torch_from_the_start() -> Iterator[None]:
    """Each test gets a torch that has compiled nothing, with its default settings."""
    with torch_unused():
        yield


@pytest.fixture
def seen() -> Iterator[Seen]:
    watcher = Seen()
    yield watcher
    watcher.uninstall()


@pytest.fixture
def watching() -> Iterator[Seen]:
    """The same with the process's own recorder, which `compilewatch.watch` writes to."""
    watcher = Seen(RECORDER)
    yield watcher
    watcher.uninstall()
    RECORDER.stop()


def found(report: Report, kind: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.kind == kind]


def eager_fallbacks(report: Report) -> list[Fact]:
    return [fact for fact in report.facts if fact.kind == "latched_eager"]
