"""Numerics: results of golden batches on the instances of versions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from compilewatch.wire.numerics import Parity, parity_of
from django.db.models import QuerySet

from dashboard.fleet.models import Deployment, ParityResult
from dashboard.fleet.names import NAME_COLUMNS, NameColumns, process_name

MAX_ROWS = 2000


@dataclass(frozen=True)
class ParityRow:
    """Result of one golden batch on one instance."""

    instance: int
    version_id: int
    last_minute: int
    at: datetime
    failed_at: datetime | None
    told: Parity


def query_version_parities(
    *, project_id: int, environment: str, version_ids: Collection[int]
) -> QuerySet[Any, Any]:
    """Return the query of results on instances of these versions for `parse_version_parities`."""
    rows = ParityResult.objects.filter(
        project_id=project_id,
        instance__version_id__in=version_ids,
        instance__environment=environment,
    ).order_by("-at", "-pk")
    read: QuerySet[Any, Any] = rows.values_list(
        "instance_id",
        "instance__version_id",
        "instance__last_minute",
        "at",
        "failed_at",
        "told",
        "name",
        "pk",
    )
    return read[:MAX_ROWS]


def parse_version_parities(rows: Iterable[tuple[Any, ...]]) -> list[ParityRow]:
    """Return the results, the newest first."""
    newest = sorted(rows, key=lambda row: (row[3], row[-1]), reverse=True)
    return [
        ParityRow(instance, version, minute, at, failed_at, parse_parity(told, name))
        for instance, version, minute, at, failed_at, told, name, _ in newest
    ]


class JudgedParity(NamedTuple):
    """Result for the judge; `place` is the name of the instance."""

    instance: str
    place: str
    at: datetime
    failed_at: datetime | None
    told: Parity


def list_deployment_parities(
    *, deployment: Deployment, live_from: int | None
) -> list[JudgedParity]:
    """Return the results on instances of a deployment, the newest first; one query.

    `live_from` restricts the result to instances that reported since that minute.
    """
    rows = ParityResult.objects.filter(
        project_id=deployment.project_id,
        instance__version_id=deployment.version_id,
        instance__environment=deployment.environment,
    )
    if live_from is not None:
        rows = rows.filter(instance__last_minute__gte=live_from)
    read = rows.order_by("-at", "-pk").values_list(
        "at", "failed_at", "told", "name", *(f"instance__{column}" for column in NAME_COLUMNS)
    )
    return [
        JudgedParity(
            who[0], process_name(NameColumns._make(who)), at, failed_at, parse_parity(told, name)
        )
        for at, failed_at, told, name, *who in read[:MAX_ROWS]
    ]


def parse_parity(told: Any, name: str) -> Parity:
    """Parse a stored result under the name of its row."""
    return parity_of({**(told if isinstance(told, dict) else {}), "name": name})
