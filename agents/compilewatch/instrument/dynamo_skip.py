"""Dynamo skip list: torch runs the agent's frames uncompiled and continues with the functions
that they call."""

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
    call_recorder,
    call_sampling,
    eager_tracker,
    event_recorder,
    recorder,
    region_spec,
    sampler,
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
    call_recorder,
    event_recorder,
    region_spec,
    timed_call,
    call_sampling,
    sampler,
    object_proxy,
    async_calls,
    kill_switch,
    thread_state,
    api,
    wrap,
)
"""Modules with functions that run inside a call of the job."""


def frames_skip() -> None:
    """Registers the agent's code with torch, if torch is loaded and supports it.

    `torch.compile(watch(f))` then compiles f, and its calls are timed."""
    if not SKIP_CODE.problem():
        skip = SKIP_CODE.find(_ignore)
        for module in OURS:
            for code in _iterate_codes(module):
                skip(code)
    hotpath.tracing = getattr(sys.modules.get("torch.compiler"), "is_compiling", hotpath.tracing)


def _ignore(code: CodeType) -> None:
    """Fallback without torch."""


def _iterate_codes(module: ModuleType) -> Iterator[CodeType]:
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else [value]
        for member in members:
            if isinstance(member, FunctionType) and member.__module__ == module.__name__:
                yield from _iterate_nested(member.__code__)


def _iterate_nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in [constant for constant in code.co_consts if type(constant) is CodeType]:
        yield from _iterate_nested(inner)
