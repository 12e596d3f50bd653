"""Keeps torch from compiling our own frames: it runs them as they are and goes on with what they call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType

from compilewatch import hotpath, lines, recorder, suspended, watching

OURS = (hotpath, lines, recorder, suspended, watching)
"""The modules whose functions run inside a call of the job."""


def frames_skip() -> None:
    """Tells torch, if it is loaded and can be told; `torch.compile(watch(f))` then compiles f, and its calls are timed."""
    skip = getattr(sys.modules.get("torch._dynamo.eval_frame"), "skip_code", None)
    if skip is not None:
        for module in OURS:
            for code in _codes_of(module):
                skip(code)
    hotpath.tracing = getattr(sys.modules.get("torch.compiler"), "is_compiling", hotpath.tracing)


def _codes_of(module: ModuleType) -> Iterator[CodeType]:
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else [value]
        for member in members:
            if isinstance(member, FunctionType) and member.__module__ == module.__name__:
                yield from _with_inner(member.__code__)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)
