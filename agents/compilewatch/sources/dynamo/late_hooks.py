"""Late-hook check: finds hooks registered on a module after its code was compiled.

Compiled code has no guard for such a hook and never calls the hook."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import HOOKS_UNGUARDED, NEXT_HOOK, problems_of
from compilewatch.sources import Capability, Source
from compilewatch.sources.dynamo.scrubber import shorten_path
from compilewatch.sources.dynamo.user_frames import Place

KINDS = {
    "_forward_hooks": "forward hook",
    "_forward_pre_hooks": "forward pre-hook",
    "_backward_hooks": "backward hook",
    "_backward_pre_hooks": "backward pre-hook",
}
"""Hook tables of a module. A table maps handle numbers to hooks; torch numbers the handles of all
modules in one sequence."""
MAX_ROOTS = 1000
_COMPILED: weakref.WeakKeyDictionary[Recorder, CompiledModules] = weakref.WeakKeyDictionary()


class Root(NamedTuple):
    """A module that compiled code calls, and the next handle number at the time of compilation."""

    module: weakref.ref[Any]
    next_hook_id: int
    runs_own_hooks: bool
    """True if torch compiled the module's forward. Hooks of the module run around that code; hooks
    of inner modules do not."""


class CompiledModules:
    """The modules in compiled code. One for each recorder."""

    def __init__(self) -> None:
        self.roots: dict[int, Root] = {}

    @classmethod
    def of(cls, recorder: Recorder) -> CompiledModules:
        known = _COMPILED.get(recorder)
        return _COMPILED.setdefault(recorder, cls()) if known is None else known

    def note(self, modules: Mapping[int, tuple[weakref.ref[Any], bool]]) -> None:
        """Record the modules among the variables of a frame that this thread has compiled."""
        next_hook = NEXT_HOOK.find()
        if isinstance(next_hook, int) and HOOKS_UNGUARDED.find() is True:
            for key, (module, runs_own) in modules.items():
                if key in self.roots or len(self.roots) < MAX_ROOTS:
                    self.roots[key] = Root(module, next_hook, runs_own)


class LateHooks(Source):
    """Compares handle numbers about once a second if any hook was registered since. Patches no
    torch function."""

    name = "late_hooks"
    module = "torch._dynamo.utils"

    def __init__(self) -> None:
        self._checked_hook = -1
        self._reported: set[tuple[str, int]] = set()

    def install(self, recorder: Recorder) -> Capability:
        return self.poll(recorder)

    def poll(self, recorder: Recorder) -> Capability:
        problems = problems_of(NEXT_HOOK)
        next_hook = NEXT_HOOK.find()
        if not problems and next_hook != self._checked_hook:
            roots = CompiledModules.of(recorder).roots
            for key in [key for key, root in list(roots.items()) if root.module() is None]:
                roots.pop(key, None)
            for text, where, hook_key in _find_late_hooks(list(roots.values())):
                if hook_key not in self._reported:
                    self._reported.add(hook_key)
                    recorder.record_finding("hook_too_late", text, where)
            self._checked_hook = next_hook
        return ("no", "; ".join(problems)) if problems else ("yes", "")


def _find_late_hooks(roots: list[Root]) -> Iterator[tuple[str, str, tuple[str, int]]]:
    """Yield text, place and key of each hook that was registered after the code was compiled."""
    own = {id(root.module()) for root in roots if root.runs_own_hooks}
    for root in roots:
        top = root.module()
        for module in [] if top is None else list(top.modules()):
            if id(module) in own:
                continue
            for table, kind in KINDS.items():
                for number, hook in list((module.__dict__.get(table) or {}).items()):
                    if number >= root.next_hook_id:
                        name = type(module).__qualname__
                        yield (
                            f"a {kind} of {name}, registered after the code was compiled, "
                            "never runs",
                            _place(hook),
                            (table, number),
                        )


def _place(hook: Any) -> str:
    """Return the place of the hook's code; empty if the hook has no Python code."""
    call = getattr(type(hook), "__call__", None)  # noqa: B004
    code = getattr(hook, "__code__", None) or getattr(call, "__code__", None)
    return (
        ""
        if code is None
        else str(Place(shorten_path(code.co_filename), code.co_firstlineno, code.co_name))
    )
