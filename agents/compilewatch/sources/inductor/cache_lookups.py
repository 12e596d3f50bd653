"""Whether torch's compile caches answered: each lookup as torch's timers tell it, its records and counters where they do not."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from compilewatch.identity.compile_config import OPTIONS
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import CACHE_STATISTICS
from compilewatch.sources.dynamo.scrubber import normal
from compilewatch.sources.dynamo.typed_getattr import number
from compilewatch.sources.inductor.cache_key_parts import LateParts, later
from compilewatch.sources.inductor.loaded_keys import keys_here

LOOKUPS = {"inductor_compile": "fx", "backend_compile": "aot"}
"""The timer inside which a cache is asked, and the cache."""
_RECORDED = {"fx": "inductor_fx", "aot": "aotautograd"}
_STATISTICS = ("LocalAutotuneCache", "RemoteAutotuneCache")
_ANSWERS = ("miss", "bypass", "hit")
_COUNTED = (
    *(("fx", answer, "inductor", (f"fxgraph_cache_{answer}",)) for answer in _ANSWERS),
    *(("aot", answer, "aot_autograd", (f"autograd_cache_{answer}",)) for answer in _ANSWERS),
    ("bundle", "miss", "inductor", ("triton_bundler_save_kernel",)),
    (
        "bundle",
        "hit",
        "inductor",
        ("triton_bundler_read_and_emit_kernel", "triton_bundler_load_static_autotuner"),
    ),
    ("write", "error", "inductor", ("fxgraph_cache_write_error",)),
)
"""Cache, answer, and the counters that grow by it; of each cache the worst answer first."""
WRITE = "write"
"""Stands among the counted answers where the folder did not take what was compiled: no cache, and told of no compilation."""
_GROUPS = ("inductor", "aot_autograd")
_MAX_LOOKUPS, _MAX_LOADED = 64, 10_000
KEY_LENGTH = 16
CACHES = ("fx", "aot", "autotune", "bundle")

Counters = Mapping[str, Mapping[str, Any]]
_LOOKUPS_OF: weakref.WeakKeyDictionary[Recorder, CacheLookups] = weakref.WeakKeyDictionary()


class Lookup(NamedTuple):
    """One question to one cache."""

    cache: str
    answer: str
    key: str = ""
    """The key that was asked for, as torch names it."""
    reason: str = ""
    """Why the cache was bypassed."""
    backward: bool = False
    parts: LateParts | None = None
    """What went into the key, where torch told it."""


class Taken(NamedTuple):
    """What a thread's compilation asked: its lookups, and the answers by which torch's counters grew."""

    lookups: list[Lookup]
    counted: dict[str, str]


class Asked(NamedTuple):
    """What one compilation asked of the caches."""

    answers: dict[str, str]
    """By cache; a miss of any part of a graph makes the whole a miss."""
    lookups: list[Lookup]
    unwritten: bool = False
    """Whether torch counted that it could not put the graph into the folder."""

    @property
    def key(self) -> str:
        """What names the compilation in every process: AOTAutograd's key, which a hit tells too, else the graph's; cut short."""
        keys = (
            lookup.key
            for cache in ("aot", "fx")
            for lookup in self.lookups
            if lookup.cache == cache and lookup.key
        )
        return next(keys, "")[:KEY_LENGTH]

    @property
    def bypasses(self) -> list[str]:
        """Why caches were bypassed, each reason once."""
        return list(
            dict.fromkeys(
                lookup.reason
                for lookup in self.lookups
                if lookup.answer == "bypass" and lookup.reason
            )
        )


NOTHING_ASKED = Asked({}, [])


class _Thread(threading.local):
    """The lookups of the compilation that a thread is in."""

    def __init__(self) -> None:
        self.lookups: list[Lookup] = []


class CacheLookups:
    """What compilations ask of the caches. One per recorder."""

    def __init__(self) -> None:
        self._thread = _Thread()
        self._counters = CacheCounters({})
        self._loaded: set[str] = set()
        self._brought_read = False
        """Whether it was asked what `compilewatch cache load` put into the folder."""

    @classmethod
    def of(cls, recorder: Recorder) -> CacheLookups:
        known = _LOOKUPS_OF.get(recorder)
        return _LOOKUPS_OF.setdefault(recorder, cls()) if known is None else known

    def count_in(self, counters: Counters) -> None:
        """These are torch's counters."""
        self._counters = CacheCounters(counters)

    def begin(self) -> None:
        """A compilation begins on this thread: what was counted before it is not its own."""
        self._thread.lookups = []
        self._counters.rebase()

    def add(self, lookup: Lookup) -> None:
        """A lookup of the compilation that this thread is in."""
        if len(self._thread.lookups) < _MAX_LOOKUPS:
            self._thread.lookups.append(lookup)

    def loaded(self, keys: Iterable[str]) -> None:
        """A mega-cache brought these keys."""
        self._loaded.update(itertools.islice(keys, max(0, _MAX_LOADED - len(self._loaded))))

    def ended(self, event: Mapping[str, Any]) -> None:
        """One of the timers of LOOKUPS ended; torch has put into its arguments what the cache answered."""
        told = event.get("args") or {}
        state, components = told.get("cache_state"), told.get("components")
        if state in _ANSWERS:
            self.add(
                Lookup(
                    cache=LOOKUPS[event["name"]],
                    answer=state,
                    key=str(told.get("key") or ""),
                    reason=normal(str(told.get("cache_bypass_reason") or ""))
                    if state == "bypass"
                    else "",
                    backward=bool(told.get("is_backward")),
                    parts=later(components) if isinstance(components, list) else None,
                )
            )

    def take(self) -> Taken:
        """What the compilation that ends on this thread asked, and how the job has set torch's options."""
        lookups, self._thread.lookups = self._thread.lookups, []
        taken = Taken(lookups, self._counters.delta())
        if lookups or taken.counted:
            OPTIONS.note()
        return taken

    def asked(self, taken: Taken, record: Any) -> Asked:
        """The same as one answer per cache, completed by torch's record of the compilation; on any thread."""
        lookups, counted = taken
        told = [(lookup.cache, lookup.answer) for lookup in lookups]
        answers = {}
        for cache in CACHES:
            known = [answer for asked, answer in told if asked == cache]
            answer = (
                next((answer for answer in _ANSWERS if answer in known), "")
                or _recorded(record, cache)
                or counted.get(cache, "")
            )
            if answer:
                answers[cache] = answer
        if answers.get("aot") == "hit" and "fx" not in dict(told):
            # A hit replays the counters of the compilation that it stands for; the graphs themselves were all there.
            answers["fx"] = "hit"
        if answers and not self._brought_read:
            self._brought_read = True
            self.loaded(keys_here(os.environ))
        if self._loaded and answers.get("fx") in ("hit", "miss"):
            served = any(lookup.key in self._loaded for lookup in lookups if lookup.answer == "hit")
            answers["mega"] = "hit" if served else "miss"
        return Asked(answers, lookups, WRITE in counted)


class _Snapshot(NamedTuple):
    """What the counters said at one moment. It is taken whole, as looking at each of them would take longer."""

    sections: dict[str, Any]
    """The counters themselves, by group: after they were cleared they are other objects."""
    counts: dict[str, dict[str, Any]]
    autotune: dict[str, int]


class CacheCounters:
    """Reads `torch._dynamo.utils.counters` and remembers what it has already told, for a torch that tells nothing better."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.rebase()

    def rebase(self) -> None:
        """What was counted until now is told."""
        self._told = self._snapshot()

    def delta(self) -> dict[str, str]:
        """Each cache's answer since the last call: a miss of any part of a graph makes the whole a miss."""
        before, now = self._told, self._snapshot()
        self._told = now
        answers: dict[str, str] = {}
        for cache, answer, group, names in _COUNTED:
            if cache not in answers:
                had = (
                    _total(before.counts[group], names)
                    if now.sections[group] is before.sections[group]
                    else 0
                )
                has = _total(now.counts[group], names)
                # Cleared counters are other objects, or smaller: what stands there now is new.
                if has > (had if has >= had else 0):
                    answers[cache] = answer
        for answer in ("miss", "hit"):
            had, has = before.autotune[answer], now.autotune[answer]
            if "autotune" not in answers and has > (had if has >= had else 0):
                answers["autotune"] = answer
        return answers

    def _snapshot(self) -> _Snapshot:
        # The counters are default dictionaries: `get` leaves the job's own view of them unchanged.
        sections = {group: self._counters.get(group) for group in _GROUPS}
        counts = {
            group: dict(section) if isinstance(section, Mapping) else {}
            for group, section in sections.items()
        }
        statistics = CACHE_STATISTICS.find()
        found = (
            [statistics.get(name) for name in _STATISTICS]
            if isinstance(statistics, Mapping)
            else []
        )
        autotune = {
            answer: sum([int(number(one, answer) or 0) for one in found if one is not None])
            for answer in ("miss", "hit")
        }
        return _Snapshot(sections, counts, autotune)


def _total(counts: dict[str, Any], names: tuple[str, ...]) -> int:
    found = [counts.get(name) for name in names]
    return sum([count for count in found if isinstance(count, int)])


def _recorded(record: Any, cache: str) -> str:
    """The answer in the counts of torch's own record, which nobody clears; empty where it has none."""
    prefix = _RECORDED.get(cache)
    hits, misses = (
        [
            int(number(record, f"{prefix}_{place}_cache_{answer}_count") or 0)
            for place in ("local", "remote")
        ]
        for answer in ("hit", "miss")
    )
    # What the folder missed and the remote cache had is a hit.
    if max(misses[0] - hits[1], 0 if hits[0] + misses[0] else misses[1]) > 0:
        return "miss"
    return "hit" if any(hits) else ""
