"""Finding list: the findings of a project, filtered, sorted and paged, with a fixed number of
queries."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import BigIntegerField, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from dashboard.fleet.models import (
    Finding,
    FindingInstance,
    FindingLife,
    FindingVersion,
    ModelVersion,
    WatchedModel,
)

STATES = ("new", "back", "ongoing", "gone")
SORTS = {
    "last": ("last_seen_at", "pk"),
    "first": ("first_seen_at", "pk"),
    "times": ("times", "last_seen_at", "pk"),
}
NEWEST = ("-last_seen_at", "-pk")
MOST_CHOICES = 200


@dataclass(frozen=True)
class FindingFilter:
    """Filters and order of the list; an empty filter matches all findings."""

    model_id: int | None = None
    version_id: int | None = None
    environment: str = ""
    kind: str = ""
    state: str = ""
    text: str = ""
    order: tuple[str, ...] = NEWEST


@dataclass(frozen=True)
class EnvironmentState:
    """State of a finding in an environment."""

    environment: str
    state: str
    since_minute: int


@dataclass(frozen=True)
class ListedFinding:
    """One finding of the list. `times` counts occurrences within the requested version and
    environment."""

    id: int
    kind: str
    text: str
    where: str
    model_id: int
    model: str
    simulated: bool
    first_version: str
    last_version: str
    first_seen_at: datetime
    last_seen_at: datetime
    times: int
    instances: int
    lives: list[EnvironmentState] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    distinct: int = 0
    pattern: str = ""


@dataclass(frozen=True)
class FindingList:
    """One page of the list, the total number of rows, and the filter choices with counts."""

    rows: list[ListedFinding]
    total: int
    kinds: dict[str, int]
    states: dict[str, int]
    models: list[tuple[int, str]]
    versions: list[tuple[int, str]]


def read_finding_list(
    *, project_id: int, wanted: FindingFilter, page: int, size: int, with_models: bool = True
) -> FindingList:
    """Return one page of `size` rows, or the last page if the list is shorter.

    Five queries, or six with a chosen model; four without the choices of models and versions.
    """
    counted = (
        filter_findings(project_id, wanted, but="kind")
        .values("kind")
        .annotate(n=Count("pk"))
        .order_by()
    )
    kinds = {row["kind"]: row["n"] for row in counted}
    total = kinds.get(wanted.kind, 0) if wanted.kind else sum(kinds.values())
    first = (min(page, max(1, -(-total // size))) - 1) * size
    named = with_models and wanted.model_id is not None
    return FindingList(
        rows=_rows(filter_findings(project_id, wanted), wanted, first, size),
        total=total,
        kinds=kinds,
        states=_states(project_id, wanted),
        models=_models(project_id) if with_models else [],
        versions=_versions(project_id, wanted.model_id or 0) if named else [],
    )


def filter_findings(project_id: int, wanted: FindingFilter, *, but: str = "") -> QuerySet[Finding]:
    """Return the findings that match the filters; `but` names a filter to ignore."""
    rows = Finding.objects.filter(project_id=project_id)
    if wanted.model_id is not None:
        rows = rows.filter(model_id=wanted.model_id)
    if wanted.version_id is not None or wanted.environment:
        rows = rows.filter(Exists(_sightings(wanted)))
    if wanted.kind and but != "kind":
        rows = rows.filter(kind=wanted.kind)
    if wanted.state and but != "state":
        rows = rows.filter(
            Exists(_filter_states(wanted).filter(finding=OuterRef("pk"), state=wanted.state))
        )
    if wanted.text:
        rows = rows.filter(Q(text__icontains=wanted.text) | Q(where__icontains=wanted.text))
    return rows


def _sightings(wanted: FindingFilter) -> QuerySet[FindingVersion]:
    seen = FindingVersion.objects.filter(finding=OuterRef("pk"))
    seen = seen.filter(version_id=wanted.version_id) if wanted.version_id is not None else seen
    return seen.filter(environment=wanted.environment) if wanted.environment else seen


def _filter_states(wanted: FindingFilter) -> QuerySet[FindingLife]:
    rows = FindingLife.objects.all()
    return rows.filter(environment=wanted.environment) if wanted.environment else rows


def _states(project_id: int, wanted: FindingFilter) -> dict[str, int]:
    """Return the number of findings by state; a finding in several environments may count in
    several states."""
    matching = filter_findings(project_id, wanted, but="state").values("pk")
    rows = (
        _filter_states(wanted)
        .filter(finding__in=matching)
        .values("state")
        .annotate(n=Count("finding", distinct=True))
        .order_by()
    )
    return {row["state"]: row["n"] for row in rows}


def _rows(
    matching: QuerySet[Finding], wanted: FindingFilter, first: int, most: int
) -> list[ListedFinding]:
    found = list(_annotate_counts(matching, wanted).order_by(*wanted.order)[first : first + most])
    lives = _read_states([row.pk for row in found])
    return [
        ListedFinding(
            id=row.pk,
            kind=row.kind,
            text=row.text,
            where=row.where,
            model_id=row.model_id,
            model=row.model.name,
            simulated=row.model.simulated,
            first_version=row.first_version.name,
            last_version=row.last_version.name,
            first_seen_at=row.first_seen_at,
            last_seen_at=row.last_seen_at,
            times=row.times,
            instances=row.on_instances,
            lives=lives.get(row.pk, []),
            values=row.values,
            distinct=row.distinct,
            pattern=row.pattern,
        )
        for row in found
    ]


def _annotate_counts(matching: QuerySet[Finding], wanted: FindingFilter) -> QuerySet[Any]:
    """Return the findings with `times` within the filters, and `on_instances`."""
    rows: QuerySet[Any]
    if wanted.version_id is not None or wanted.environment:
        summed = (
            _sightings(wanted).order_by().values("finding").annotate(n=Sum("count")).values("n")
        )
        rows = matching.annotate(
            times=Coalesce(Subquery(summed), 0, output_field=BigIntegerField())
        )
    else:
        rows = matching.annotate(times=F("count"))
    seen_on = (
        FindingInstance.objects.filter(finding=OuterRef("pk"))
        .order_by()
        .values("finding")
        .annotate(n=Count("pk"))
        .values("n")
    )
    return rows.annotate(on_instances=Coalesce(Subquery(seen_on), 0)).select_related(
        "model", "first_version", "last_version"
    )


def _read_states(ids: Collection[int]) -> dict[int, list[EnvironmentState]]:
    found: dict[int, list[EnvironmentState]] = {}
    rows = FindingLife.objects.filter(finding_id__in=list(ids)).order_by("environment")
    for finding, environment, state, since in rows.values_list(
        "finding_id", "environment", "state", "since_minute"
    ):
        found.setdefault(finding, []).append(EnvironmentState(environment, state, since))
    return found


def _models(project_id: int) -> list[tuple[int, str]]:
    has_some = Exists(Finding.objects.filter(model=OuterRef("pk")))
    rows = WatchedModel.objects.filter(has_some, project_id=project_id).order_by("name")
    return list(rows.values_list("pk", "name")[:MOST_CHOICES])


def _versions(project_id: int, model_id: int) -> list[tuple[int, str]]:
    rows = ModelVersion.objects.filter(project_id=project_id, model_id=model_id).order_by(
        "-first_seen_at", "-pk"
    )
    return list(rows.values_list("pk", "name")[:MOST_CHOICES])
