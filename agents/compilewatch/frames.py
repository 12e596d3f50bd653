"""Keeps torch from compiling our own frames: it runs them as they are and goes on with what they call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType

from compilewatch import (
    compiling,
    counted,
    hotpath,
    latched,
    lines,
    pieces,
    recorder,
    running,
    sampling,
    stand_in,
    suspended,
    switch,
    threads,
    watching,
    wrapping,
)
from compilewatch.sources.torch_names import SKIP_CODE

OURS = (
    compiling,
    counted,
    hotpath,
    latched,
    lines,
    pieces,
    recorder,
    running,
    sampling,
    stand_in,
    suspended,
    switch,
    threads,
    watching,
    wrapping,
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
