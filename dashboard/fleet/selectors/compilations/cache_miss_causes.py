"""Why an instance missed the caches, by comparison with the last warm instance of the same model on
the same type of GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
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
from django.db.models import Count, Q

from dashboard.fleet.models import CompileEvent, Instance
from dashboard.fleet.names import NAME_COLUMNS, NameColumns, process_name
from dashboard.fleet.selectors.compilations.cache_outcomes import CACHE_LOOKUP, HIT, MISS

CANDIDATES = 300
CAUSE_BY_ACCESS = defaultdict(
    lambda: LACKING_FOLDER, {READ_ONLY: UNWRITABLE_FOLDER, WRITTEN: EMPTY_FOLDER}
)
"""Why the same folder lacks what was asked for, by what the agent told of its access."""
SAME_CONFIGURATION = "graph or its inputs: nothing that we can see of the configuration differs"


@dataclass
class CacheClient:
    """One instance as far as it matters here."""

    id: int
    name: str
    gpu: str
    rank: int
    started_at: datetime
    hits: int = 0
    misses: int = 0
    components: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    """What it asked the caches for."""

    @property
    def warm(self) -> bool:
        """Whether the caches served it."""
        return self.hits > 0 and self.hits >= self.misses


@dataclass(frozen=True)
class MissExplanation:
    """A cause, and the instance that it was found against; empty where there was none."""

    cause: str
    against: str
    warm: bool = False


def find_miss_causes(
    *, project_id: int, model_id: int, instance_ids: Collection[int]
) -> dict[int, MissExplanation]:
    """The cause for each of these instances; a handful of queries, none where nothing is asked."""
    if not instance_ids:
        return {}
    known = _processes(project_id, model_id, instance_ids)
    _answers_add(project_id, known)
    pairs = {id: choose_reference(known[id], known.values()) for id in instance_ids if id in known}
    needed = {id for id, other in pairs.items() if other is not None} | {
        other.id for other in pairs.values() if other is not None
    }
    _details_add(project_id, known, needed)
    return {id: explain_miss(known[id], other) for id, other in pairs.items()}


def choose_reference(process: CacheClient, others: Iterable[CacheClient]) -> CacheClient | None:
    """The last warm process on the same type of GPU that started before, of the same rank if there
    is one: ranks compile for devices of different numbers. Without a warm one the last that
    compiled at all."""
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
    """Torch asked for the same and it was not there, or it asked for something else and the
    configuration says why."""
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
    """Why a process looked where nothing is: an engine by its own key, or in another folder. An
    engine's own folder is no component."""
    if any(engine_differences(mine, theirs)):
        return first_difference(mine, theirs)
    if FOLDER in mine and FOLDER in theirs and is_changed(FOLDER, mine, theirs):
        return OTHER_FOLDER
    return CAUSE_BY_ACCESS[mine.get(ACCESS, "")]


def _without_folder(components: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in components.items() if name != FOLDER}


def _processes(
    project_id: int, model_id: int, instance_ids: Collection[int]
) -> dict[int, CacheClient]:
    """These instances, and the newest others of the model."""
    rows = Instance.objects.filter(project_id=project_id, model_id=model_id)
    columns = ("id", "gpu", "started_at", *NAME_COLUMNS)
    newest = list(rows.order_by("-started_at", "-id").values_list(*columns)[:CANDIDATES])
    asked = list(rows.filter(id__in=instance_ids).values_list(*columns))
    named = [(id, gpu, at, NameColumns._make(who)) for id, gpu, at, *who in newest + asked]
    return {id: CacheClient(id, process_name(who), gpu, who.rank, at) for id, gpu, at, who in named}


def _events(project_id: int, known: Mapping[int, CacheClient], ids: Collection[int]) -> Q:
    since = min(known[id].started_at for id in ids)
    return Q(
        project_id=project_id, day__gte=int(since.timestamp() // 86400), instance_id__in=list(ids)
    )


def _answers_add(project_id: int, known: dict[int, CacheClient]) -> None:
    if not known:
        return
    rows = CompileEvent.objects.filter(_events(project_id, known, known)).values("instance_id")
    for row in rows.annotate(
        hits=Count("number", filter=HIT), misses=Count("number", filter=MISS)
    ).order_by():
        known[row["instance_id"]].hits, known[row["instance_id"]].misses = (
            row["hits"],
            row["misses"],
        )


def _details_add(project_id: int, known: dict[int, CacheClient], ids: Collection[int]) -> None:
    if not ids:
        return
    for id, components in Instance.objects.filter(id__in=ids).values_list("id", "components"):
        known[id].components = {str(name): str(value) for name, value in components.items()}
    rows = CompileEvent.objects.filter(_events(project_id, known, ids), CACHE_LOOKUP).exclude(
        cache_key=""
    )
    for id, key in rows.values_list("instance_id", "cache_key").distinct().order_by():
        known[id].keys.add(key)
