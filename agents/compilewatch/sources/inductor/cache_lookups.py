"""Cache lookups: whether torch's compile caches answered, merged from three sources of torch.

Algorithm: one answer per cache and compilation, from the most to the least precise source:

1. The end events of torch's timers (`LOOKUPS`) carry each lookup: state, key, bypass reason, and
   the components of the key.
2. torch's record of the compilation (`CompilationMetrics`) has hit and miss counts per cache.
3. torch's global counters and autotune statistics: the difference of two snapshots.

A miss of any graph makes the whole answer a miss (the order of `_ANSWERS`). A hit of AOTAutograd's
cache implies hits of all its graphs. A hit on a key from a cache file is also a mega-cache hit.

Invariants:
- `begin`, `ended`, `add` and `take` run on the compiling thread. Lookups are thread-local, so
  parallel compilations do not mix and need no lock. `asked` may run on any thread.
- The counters belong to the job. They are only read, with `get`, because they are default
  dictionaries. A cleared counter is another object or a smaller number and is not a negative count.
- Two threads that compile at the same time share the counters, so a difference of counters is used
  only if sources 1 and 2 have no answer.

Cost: a snapshot copies two small dictionaries per compilation; key lines are parsed later, on the
agent's thread.
Source: `torch._dynamo.utils` (counters, `CompilationMetrics`, chromium events)."""

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
from compilewatch.sources.dynamo.scrubber import normalize
from compilewatch.sources.dynamo.typed_getattr import get_number
from compilewatch.sources.inductor.cache_key_parts import UnparsedKey, queue_lines
from compilewatch.sources.inductor.loaded_keys import read_local_keys

LOOKUPS = {"inductor_compile": "fx", "backend_compile": "aot"}
"""The timer in which each cache lookup takes place."""
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
"""Cache, answer, counter group, counters that grow; the worst answer of a cache comes first."""
WRITE = "write"
"""Pseudo cache for failed writes into the folder; no compilation reports it as a cache."""
_GROUPS = ("inductor", "aot_autograd")
_MAX_LOOKUPS, _MAX_LOADED = 64, 10_000
KEY_LENGTH = 16
CACHES = ("fx", "aot", "autotune", "bundle")

Counters = Mapping[str, Mapping[str, Any]]
_LOOKUPS_OF: weakref.WeakKeyDictionary[Recorder, CacheLookups] = weakref.WeakKeyDictionary()


class Lookup(NamedTuple):
    """One lookup in one cache."""

    cache: str
    answer: str
    key: str = ""
    """The key of the lookup, as torch names it."""
    reason: str = ""
    """Why the cache was bypassed."""
    backward: bool = False
    parts: UnparsedKey | None = None
    """The components of the key, if torch reported them."""


class LookupResult(NamedTuple):
    """Lookups of one compilation on its thread, and the answers that torch's counters show."""

    lookups: list[Lookup]
    counter_answers: dict[str, str]


class CacheAnswers(NamedTuple):
    """Cache answers of one compilation."""

    answers: dict[str, str]
    """Answer by cache; a miss of any part makes the whole answer a miss."""
    lookups: list[Lookup]
    has_failed_write: bool = False
    """True if torch counted a failed write of the graph into the folder."""

    @property
    def key(self) -> str:
        """Shortened key, equal in every process: AOTAutograd's key, else the graph's key."""
        keys = (
            lookup.key
            for cache in ("aot", "fx")
            for lookup in self.lookups
            if lookup.cache == cache and lookup.key
        )
        return next(keys, "")[:KEY_LENGTH]

    @property
    def bypasses(self) -> list[str]:
        """The reasons of cache bypasses, without duplicates."""
        return list(
            dict.fromkeys(
                lookup.reason
                for lookup in self.lookups
                if lookup.answer == "bypass" and lookup.reason
            )
        )


NO_ANSWERS = CacheAnswers({}, [])


class _Thread(threading.local):
    """Lookups of the current compilation of a thread."""

    def __init__(self) -> None:
        self.lookups: list[Lookup] = []


class CacheLookups:
    """Cache lookups of all compilations; one instance per recorder."""

    def __init__(self) -> None:
        self._thread = _Thread()
        self._counters = CacheCounters({})
        self._loaded: set[str] = set()
        self._loaded_keys_read = False
        """True after the keys that `compilewatch cache load` wrote into the folder were read."""

    @classmethod
    def of(cls, recorder: Recorder) -> CacheLookups:
        known = _LOOKUPS_OF.get(recorder)
        return _LOOKUPS_OF.setdefault(recorder, cls()) if known is None else known

    def set_counters(self, counters: Counters) -> None:
        """Sets torch's counters."""
        self._counters = CacheCounters(counters)

    def start_compile(self) -> None:
        """Starts a compilation on this thread: earlier lookups and counts are not part of it."""
        self._thread.lookups = []
        self._counters.rebase()

    def add(self, lookup: Lookup) -> None:
        """Adds a lookup to the current compilation of this thread."""
        if len(self._thread.lookups) < _MAX_LOOKUPS:
            self._thread.lookups.append(lookup)

    def add_loaded_keys(self, keys: Iterable[str]) -> None:
        """Adds keys that a mega-cache loaded."""
        self._loaded.update(itertools.islice(keys, max(0, _MAX_LOADED - len(self._loaded))))

    def on_timer_end(self, event: Mapping[str, Any]) -> None:
        """Reads a lookup from the arguments of the end event of a timer in `LOOKUPS`."""
        args = event.get("args") or {}
        state, components = args.get("cache_state"), args.get("components")
        if state in _ANSWERS:
            self.add(
                Lookup(
                    cache=LOOKUPS[event["name"]],
                    answer=state,
                    key=str(args.get("key") or ""),
                    reason=normalize(str(args.get("cache_bypass_reason") or ""))
                    if state == "bypass"
                    else "",
                    backward=bool(args.get("is_backward")),
                    parts=queue_lines(components) if isinstance(components, list) else None,
                )
            )

    def collect(self) -> LookupResult:
        """Takes the lookups of the compilation that ends on this thread; notes torch's options."""
        lookups, self._thread.lookups = self._thread.lookups, []
        taken = LookupResult(lookups, self._counters.read_delta())
        if lookups or taken.counter_answers:
            OPTIONS.note()
        return taken

    def merge_answers(self, taken: LookupResult, record: Any) -> CacheAnswers:
        """Merges the lookups with torch's record into one answer per cache; on any thread."""
        lookups, counted = taken
        pairs = [(lookup.cache, lookup.answer) for lookup in lookups]
        answers = {}
        for cache in CACHES:
            known = [answer for asked, answer in pairs if asked == cache]
            answer = (
                next((answer for answer in _ANSWERS if answer in known), "")
                or _recorded(record, cache)
                or counted.get(cache, "")
            )
            if answer:
                answers[cache] = answer
        if answers.get("aot") == "hit" and "fx" not in dict(pairs):
            # A hit replays the counters of the stored compilation; all its graphs were hits.
            answers["fx"] = "hit"
        if answers and not self._loaded_keys_read:
            self._loaded_keys_read = True
            self.add_loaded_keys(read_local_keys(os.environ))
        if self._loaded and answers.get("fx") in ("hit", "miss"):
            served = any(lookup.key in self._loaded for lookup in lookups if lookup.answer == "hit")
            answers["mega"] = "hit" if served else "miss"
        return CacheAnswers(answers, lookups, WRITE in counted)


class _Snapshot(NamedTuple):
    """All counters at one moment; copying all of them is faster than reading each one."""

    sections: dict[str, Any]
    """The counter objects by group; a cleared group is another object."""
    counts: dict[str, dict[str, Any]]
    autotune: dict[str, int]


class CacheCounters:
    """Differences of `torch._dynamo.utils.counters`, for a torch without a better source."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.rebase()

    def rebase(self) -> None:
        """Starts a new difference at the present counts."""
        self._last = self._snapshot()

    def read_delta(self) -> dict[str, str]:
        """Each cache's answer since the last call; a miss of any part makes it a miss."""
        before, now = self._last, self._snapshot()
        self._last = now
        answers: dict[str, str] = {}
        for cache, answer, group, names in _COUNTED:
            if cache not in answers:
                had = (
                    _sum_counts(before.counts[group], names)
                    if now.sections[group] is before.sections[group]
                    else 0
                )
                has = _sum_counts(now.counts[group], names)
                # Cleared counters are other objects or smaller: their present counts are all new.
                if has > (had if has >= had else 0):
                    answers[cache] = answer
        for answer in ("miss", "hit"):
            had, has = before.autotune[answer], now.autotune[answer]
            if "autotune" not in answers and has > (had if has >= had else 0):
                answers["autotune"] = answer
        return answers

    def _snapshot(self) -> _Snapshot:
        # The counters are default dictionaries: `get` does not add a key to the job's counters.
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
            answer: sum([int(get_number(one, answer) or 0) for one in found if one is not None])
            for answer in ("miss", "hit")
        }
        return _Snapshot(sections, counts, autotune)


def _sum_counts(counts: dict[str, Any], names: tuple[str, ...]) -> int:
    found = [counts.get(name) for name in names]
    return sum([count for count in found if isinstance(count, int)])


def _recorded(record: Any, cache: str) -> str:
    """The answer in torch's record, whose counts are never cleared; empty if there is none."""
    prefix = _RECORDED.get(cache)
    hits, misses = (
        [
            int(get_number(record, f"{prefix}_{place}_cache_{answer}_count") or 0)
            for place in ("local", "remote")
        ]
        for answer in ("hit", "miss")
    )
    # A local miss that the remote cache answered is a hit.
    if max(misses[0] - hits[1], 0 if hits[0] + misses[0] else misses[1]) > 0:
        return "miss"
    return "hit" if any(hits) else ""
