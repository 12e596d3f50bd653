"""Dynamo skip list: torch runs the agent's own frames uncompiled, and compiles what they call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType

import compilewatch.instrument.api  # it loads every module of a call
import compilewatch.recording
from compilewatch.instrument import hotpath
from compilewatch.runtime.torch_internals import SKIP_CODE

_HOT_PACKAGES = (compilewatch.instrument, compilewatch.recording)
"""The packages whose functions run inside a call of the job; `api` imports all such modules."""


def skip_frames() -> None:
    """Registers the agent's frames with torch, if torch is imported and has the function. Then
    `torch.compile(watch(f))` compiles f, and its calls are timed."""
    if not SKIP_CODE.problem():
        skip = SKIP_CODE.find(_ignore)
        for module in _hot_modules():
            for code in _iterate_codes(module):
                skip(code)
    hotpath.is_tracing = getattr(
        sys.modules.get("torch.compiler"), "is_compiling", hotpath.is_tracing
    )


def _hot_modules() -> Iterator[ModuleType]:
    """The imported modules of the packages, which Python sets as attributes of their package."""
    for package in _HOT_PACKAGES:
        for value in list(vars(package).values()):
            if isinstance(value, ModuleType) and value.__name__.startswith(f"{package.__name__}."):
                yield value


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
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _iterate_nested(constant)
