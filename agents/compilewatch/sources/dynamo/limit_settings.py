"""Recompile-limit settings: the limit in force for a compilation, and limits set in other threads.

Torch keeps its settings by context. A limit that one thread sets has no effect in another
thread."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import (
    CACHE_SIZE_LIMIT,
    ENTRIES,
    RECOMPILE_LIMIT,
    SETTINGS,
    TOTAL_CACHE_SIZE_LIMIT,
    TOTAL_LIMIT,
    UNSET,
    TorchName,
)
from compilewatch.sources.dynamo.typed_getattr import get_number

LIMITS = {RECOMPILE_LIMIT: CACHE_SIZE_LIMIT, TOTAL_LIMIT: TOTAL_CACHE_SIZE_LIMIT}
"""Each limit, and its name before torch 2.6."""
_NAMES = {
    name.short_name: limit.short_name for limit, older in LIMITS.items() for name in (limit, older)
}
MAX_THREAD_VALUES = 64
_SET: weakref.WeakKeyDictionary[Recorder, LimitSettings] = weakref.WeakKeyDictionary()


class LimitUsage(NamedTuple):
    """Number of cache entries of a code object after a compilation, and their limit. None:
    unknown, or no limit applies."""

    entries: int | None = None
    limit: int | None = None
    ignored: tuple[str, ...] = ()
    """Text of the finding for each limit that another thread set and that is not in force here."""


NO_LIMIT = LimitUsage()


class LimitSettings:
    """Limits that the job set, by thread. One for each recorder."""

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[str, int], int] = OrderedDict()

    @classmethod
    def of(cls, recorder: Recorder) -> LimitSettings:
        """Return the limits of the recorder."""
        known = _SET.get(recorder)
        return _SET.setdefault(recorder, cls()) if known is None else known

    def read_thread(self) -> None:
        """Record the limits that this thread set before the source was installed."""
        for limit in LIMITS:
            if _is_set_here(limit):
                self._record(limit.short_name, limit.find())

    def on_option_set(self, config: Any, name: Any, value: Any) -> None:
        """Record an option of a torch configuration module that this thread sets."""
        if name in _NAMES and getattr(config, "__name__", "") == RECOMPILE_LIMIT.module:
            self._record(_NAMES[name], value)

    def find_usage(self, compiling: Mapping[str, Any]) -> LimitUsage:
        """Return the limit in force for the compilation that ends on this thread."""
        sizes = compiling.get("cache_size")
        if sizes is None:
            return NO_LIMIT  # compiled ahead of time
        each, total = _limit(RECOMPILE_LIMIT), _limit(TOTAL_LIMIT)
        new = int(compiling.get("guarded_code") is True)
        before = get_number(sizes, "num_cache_entries") or 0
        same = get_number(sizes, "num_cache_entries_with_same_id_matched_objs")
        listed = ENTRIES.call(None, compiling.get("code"))
        held = (len(listed) if isinstance(listed, list) else int(before)) + new
        everywhere = get_number(sizes, "total_cache_entries_all_regions")
        # Entries of other objects of the class, and of other isolated regions, count towards the
        # total limit only.
        is_only_object = same in (None, before) and everywhere in (None, before)
        own = held if is_only_object else int(before if same is None else same) + new
        if total is not None and (each is None or total - held < each - own):
            return LimitUsage(held, total, self._find_ignored())
        return LimitUsage(own, each, self._find_ignored())

    def _record(self, name: str, value: Any) -> None:
        if isinstance(value, int) and not isinstance(value, bool):
            key = name, threading.get_ident()
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > MAX_THREAD_VALUES:
                self._values.popitem(last=False)

    def _find_ignored(self) -> tuple[str, ...]:
        found = []
        for limit in LIMITS:
            elsewhere = next(
                (
                    value
                    for (name, _), value in reversed(list(self._values.items()))
                    if name == limit.short_name
                ),
                None,
            )
            here = _limit(limit)
            if (
                elsewhere is not None
                and here is not None
                and elsewhere != here
                and not _is_set_here(limit, unknown=True)
            ):
                found.append(_not_in_force(limit, elsewhere, here))
        return tuple(found)


def _limit(limit: TorchName) -> int | None:
    """Return the limit in this thread and context, including an option of a single
    `torch.compile`."""
    value = limit.find(LIMITS[limit].find())
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_set_here(limit: TorchName, unknown: bool = False) -> bool:
    """True if this context sets the limit. Returns `unknown` if torch keeps no settings by
    context: then each setting is in force everywhere."""
    entries = SETTINGS.find()
    override = (
        getattr(entries.get(limit.short_name), "user_override", None)
        if isinstance(entries, Mapping)
        else None
    )
    unset = UNSET.find()
    return override.get(unset) is not unset if isinstance(override, ContextVar) else unknown


def _not_in_force(limit: TorchName, elsewhere: int, here: int) -> str:
    remedy = (
        f", or call torch.compile with recompile_limit={elsewhere} where it has that option"
        if limit is RECOMPILE_LIMIT
        else ""
    )
    return (
        f"torch._dynamo.config.{limit.short_name} = {elsewhere} was set in another thread; "
        f"{here} is in force in the thread that compiles: set it in that thread{remedy}"
    )
