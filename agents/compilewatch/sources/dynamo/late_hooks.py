"""Hooks that are registered on a module after its code was compiled: the code has no guard for them, and never calls them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import HOOKS_UNGUARDED, NEXT_HOOK, problems_of
from compilewatch.sources import Answer, Source
from compilewatch.sources.dynamo.scrubber import short_path
from compilewatch.sources.dynamo.user_frames import Place

KINDS = {
    "_forward_hooks": "forward hook",
    "_forward_pre_hooks": "forward pre-hook",
    "_backward_hooks": "backward hook",
    "_backward_pre_hooks": "backward pre-hook",
}
"""By the table of a module that holds them under the number of their handle; handles are numbered in order over all modules."""
MAX_ROOTS = 1000
_COMPILED: weakref.WeakKeyDictionary[Recorder, CompiledModules] = weakref.WeakKeyDictionary()


class Root(NamedTuple):
    """A module that compiled code calls, and the number of the next handle at that time."""

    module: weakref.ref[Any]
    next_hook: int
    runs_own: bool
    """Torch compiled the module's forward: hooks of the module itself run around that code, those of modules inside do not."""


class CompiledModules:
    """The modules that were compiled into code. One per recorder."""

    def __init__(self) -> None:
        self.roots: dict[int, Root] = {}

    @classmethod
    def of(cls, recorder: Recorder) -> CompiledModules:
        known = _COMPILED.get(recorder)
        return _COMPILED.setdefault(recorder, cls()) if known is None else known

    def note(self, modules: Mapping[int, tuple[weakref.ref[Any], bool]]) -> None:
        """A frame that has these modules among its variables was compiled; on the thread that compiles."""
        next_hook = NEXT_HOOK.find()
        if isinstance(next_hook, int) and HOOKS_UNGUARDED.find() is True:
            for key, (module, runs_own) in modules.items():
                if key in self.roots or len(self.roots) < MAX_ROOTS:
                    self.roots[key] = Root(module, next_hook, runs_own)


class LateHooks(Source):
    """Compares about once a second, where any hook was registered since: nothing is put around torch's own functions."""

    name = "late_hooks"
    module = "torch._dynamo.utils"

    def __init__(self) -> None:
        self._looked_at = -1
        self._reported: set[tuple[str, int]] = set()

    def install(self, recorder: Recorder) -> Answer:
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Answer:
        problems = problems_of(NEXT_HOOK)
        next_hook = NEXT_HOOK.find()
        if not problems and next_hook != self._looked_at:
            roots = CompiledModules.of(recorder).roots
            for key in [key for key, root in list(roots.items()) if root.module() is None]:
                roots.pop(key, None)
            for text, where, hook_key in _late(list(roots.values())):
                if hook_key not in self._reported:
                    self._reported.add(hook_key)
                    recorder.finding("hook_too_late", text, where)
            self._looked_at = next_hook
        return ("no", "; ".join(problems)) if problems else ("yes", "")


def _late(roots: list[Root]) -> Iterator[tuple[str, str, tuple[str, int]]]:
    """What is to be said of each hook that came after the code that should call it, where the hook is, and which it is."""
    own = {id(root.module()) for root in roots if root.runs_own}
    for root in roots:
        top = root.module()
        for module in [] if top is None else list(top.modules()):
            if id(module) in own:
                continue
            for table, kind in KINDS.items():
                for number, hook in list((module.__dict__.get(table) or {}).items()):
                    if number >= root.next_hook:
                        name = type(module).__qualname__
                        yield (
                            f"a {kind} of {name}, registered after the code was compiled, never runs",
                            _place(hook),
                            (table, number),
                        )


def _place(hook: Any) -> str:
    """Where the hook's own code is; empty where it has none."""
    call = getattr(type(hook), "__call__", None)  # noqa: B004
    code = getattr(hook, "__code__", None) or getattr(call, "__code__", None)
    return (
        ""
        if code is None
        else str(Place(short_path(code.co_filename), code.co_firstlineno, code.co_name))
    )
