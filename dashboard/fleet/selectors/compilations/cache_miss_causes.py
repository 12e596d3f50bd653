"""Cache miss causes: compares an instance with the last warm instance of the same model and GPU
type.

1. The reference is the latest earlier process that was warm, of the same rank if there is one.
2. If both asked for mostly equal keys, the entry was missing: another folder, an unwritable folder,
or an empty folder.
3. Otherwise the first difference between the configurations is the cause.
4. Without a difference, the graph or its inputs differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from compilewatch.wire.cache_miss_causes import (
    ACCESS,
    EMPTY_FOLDER,
    FOLDER,
    LACKING_FOLDER,
    NO_EARLIER_RUN,
    NOTHING_DIFFERS,
    OTHER_FOLDER,
    READ_ONLY,
    UNWRITABLE_FOLDER,
    WRITTEN,
    engine_differences,
    first_difference,
    is_changed,
)

CAUSE_BY_ACCESS = defaultdict(
    lambda: LACKING_FOLDER, {READ_ONLY: UNWRITABLE_FOLDER, WRITTEN: EMPTY_FOLDER}
)
"""Cause of a missing entry in the same folder, by the access that the agent reports."""
SAME_CONFIGURATION = "the graph or its inputs: no visible difference in the configuration"


@dataclass
class CacheClient:
    """One instance, as far as the comparison needs it."""

    id: int
    name: str
    gpu: str
    rank: int
    started_at: datetime
    hits: int = 0
    misses: int = 0
    components: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    """Cache keys that the instance asked for."""

    @property
    def warm(self) -> bool:
        """Whether the caches served the instance."""
        return self.hits > 0 and self.hits >= self.misses


@dataclass(frozen=True)
class MissExplanation:
    """Cause of the misses, and the name of the compared instance; empty without one."""

    cause: str
    against: str
    warm: bool = False


def choose_reference(process: CacheClient, others: Iterable[CacheClient]) -> CacheClient | None:
    """Return the latest earlier process on the same GPU type, warm processes first.

    The same rank is preferred, because ranks compile for different device numbers. Without a warm
    process, return the latest that compiled.
    """
    before = [
        other
        for other in others
        if other.gpu == process.gpu
        and (other.started_at, other.id) < (process.started_at, process.id)
        and other.hits + other.misses
    ]
    return max(
        before,
        key=lambda other: (other.warm, other.rank == process.rank, other.started_at, other.id),
        default=None,
    )


def explain_miss(process: CacheClient, other: CacheClient | None) -> MissExplanation:
    """Explain the misses of a process by comparison with another one.

    With equal keys, the entry was missing. With other keys, the configuration differs.
    """
    if other is None:
        return MissExplanation(NO_EARLIER_RUN, "")
    same = len(process.keys & other.keys)
    if same and same * 2 >= len(process.keys):
        cause = _explain_missing_entry(process.components, other.components)
    else:
        cause = first_difference(
            _without_folder(process.components), _without_folder(other.components)
        )
        cause = cause or (SAME_CONFIGURATION if process.keys and other.keys else NOTHING_DIFFERS)
    return MissExplanation(cause, other.name, other.warm)


def _explain_missing_entry(mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Explain why an entry was missing: a difference of the engine's own key, another folder, or
    the folder's access.

    The folder of an engine is not a component.
    """
    if any(engine_differences(mine, theirs)):
        return first_difference(mine, theirs)
    if FOLDER in mine and FOLDER in theirs and is_changed(FOLDER, mine, theirs):
        return OTHER_FOLDER
    return CAUSE_BY_ACCESS[mine.get(ACCESS, "")]


def _without_folder(components: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in components.items() if name != FOLDER}
