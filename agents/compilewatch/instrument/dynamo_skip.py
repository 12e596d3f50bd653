"""Keeps torch from compiling our own frames: it runs them as they are and goes on with what they call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType

from compilewatch.instrument import (
    api,
    async_calls,
    hotpath,
    kill_switch,
    object_proxy,
    segments,
    timed_call,
    wrap,
)
from compilewatch.recording import (
    active_compiles,
    call_sampling,
    eager_tracker,
    recorder,
    series_buffer,
    thread_state,
    untimed_calls,
)
from compilewatch.runtime.torch_internals import SKIP_CODE

OURS = (
    active_compiles,
    untimed_calls,
    hotpath,
    eager_tracker,
    series_buffer,
    segments,
    recorder,
    timed_call,
    call_sampling,
    object_proxy,
    async_calls,
    kill_switch,
    thread_state,
    api,
    wrap,
)
"""The modules whose functions run inside a call of the job."""


def frames_skip() -> None:
    """Tells torch, if it is loaded and can be told; `torch.compile(watch(f))` then compiles f, and its calls are timed."""
    if not SKIP_CODE.problem():
        skip = SKIP_CODE.find(_nothing)
        for module in OURS:
            for code in _codes_of(module):
                skip(code)
    hotpath.tracing = getattr(sys.modules.get("torch.compiler"), "is_compiling", hotpath.tracing)


def _nothing(code: CodeType) -> None:
    """Torch is not there."""


def _codes_of(module: ModuleType) -> Iterator[CodeType]:
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else [value]
        for member in members:
            if isinstance(member, FunctionType) and member.__module__ == module.__name__:
                yield from _with_inner(member.__code__)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in [constant for constant in code.co_consts if type(constant) is CodeType]:
        yield from _with_inner(inner)
