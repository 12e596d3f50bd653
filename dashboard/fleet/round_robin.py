"""Round robin: the order in which projects and shards are folded.

Projects with few reports are folded together and first. Projects with many reports alternate with
others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from django.db import connection

from dashboard.fleet.fold_attempts import batch_size
from dashboard.ingest.models import SHARDS, InboxRow

SHARDS_AT_ONCE = 16
"""Number of shards per fold if more reports wait than fit a batch; other workers take the other
shards. A smaller backlog is one fold, because each fold has a fixed cost."""
SMALL_SHARE = 4
"""A project is small if its waiting reports fill at most a batch divided by this number."""

_SELECT_PROJECTS = (
    "WITH RECURSIVE waiting(project) AS (SELECT min(project_id) FROM ingest_inbox UNION "
    "ALL SELECT (SELECT min(project_id)"
    " FROM ingest_inbox WHERE project_id > waiting.project) FROM waiting WHERE "
    "waiting.project IS NOT NULL)"
    " SELECT project, (SELECT count(*) FROM (SELECT 1 FROM ingest_inbox WHERE project_id = "
    "project LIMIT %s) AS counted)"
    " FROM waiting WHERE project IS NOT NULL ORDER BY 2, 1"
)


@dataclass(frozen=True)
class Turn:
    """Projects and shards of the next fold."""

    shards: list[int]
    projects: list[int]


def iterate_turns() -> Iterator[Turn]:
    """Yield every waiting project once; newly waiting small projects follow each large project."""
    small, large = _count_waiting()
    yield from _group_small(small)
    shards = _list_shards_oldest_first(large) if large else []
    at_once = SHARDS if sum(large.values()) <= batch_size() else SHARDS_AT_ONCE
    for start in range(0, len(shards), at_once):
        for project in large:
            yield Turn(shards[start : start + at_once], [project])
            yield from _group_small(_count_waiting()[0])


def _count_waiting() -> tuple[dict[int, int], dict[int, int]]:
    """Return the number of waiting reports per small and per large project, the fewest first.

    Counting stops at one more than a batch.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_PROJECTS, [batch_size() + 1])
        found = {int(project): int(count) for project, count in cursor.fetchall()}
    most = batch_size() // SMALL_SHARE
    return {one: n for one, n in found.items() if n <= most}, {
        one: n for one, n in found.items() if n > most
    }


def _group_small(small: dict[int, int]) -> Iterator[Turn]:
    """Yield turns of small projects, each turn as large as fits a batch."""
    held, projects = 0, list[int]()
    for project, count in small.items():
        if projects and held + count > batch_size():
            yield Turn(_list_shards(projects), projects)
            held, projects = 0, []
        held, projects = held + count, [*projects, project]
    if projects:
        yield Turn(_list_shards(projects), projects)


def _list_shards(projects: Collection[int]) -> list[int]:
    return sorted(
        set(InboxRow.objects.filter(project_id__in=projects).values_list("shard", flat=True))
    )


def _list_shards_oldest_first(projects: Collection[int]) -> list[int]:
    """Return shards with reports of the projects, ordered by their oldest report."""
    numbers = ", ".join(f"({shard})" for shard in range(SHARDS))
    wanted = ", ".join(["%s"] * len(projects))
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH shard(number) AS (VALUES {numbers}), waiting(number, oldest) AS (SELECT "
            "number, (SELECT min(id) FROM ingest_inbox"
            f" WHERE ingest_inbox.shard = shard.number AND project_id IN ({wanted})) FROM shard)"
            " SELECT number FROM waiting WHERE oldest IS NOT NULL ORDER BY oldest",
            list(projects),
        )
        return [int(number) for (number,) in cursor.fetchall()]
