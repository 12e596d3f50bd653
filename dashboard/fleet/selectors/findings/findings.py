"""Findings: the findings of a model by version, with their states."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery

from dashboard.fleet.models import Finding, FindingInstance, FindingLife, FindingVersion

MAX_FINDINGS = 400
CERTAIN_KINDS = ("latched_eager", "oom", "parity", "compile_error", "compiled_nothing")


@dataclass(frozen=True)
class FindingSighting:
    """Occurrences of a finding in one version and environment."""

    count: int
    instances: int
    first_seen_at: datetime
    last_seen_at: datetime
    seconds: float = 0.0
    """Total cost in seconds; 0 if unknown."""


@dataclass(frozen=True)
class FindingHistory:
    """State of a finding in an environment, and its first and last version and host."""

    state: str
    since_minute: int
    first_version: str
    last_version: str
    first_host: str
    last_host: str


@dataclass(frozen=True)
class FindingData:
    """A finding, and its occurrences by version."""

    id: int
    kind: str
    text: str
    where: str
    first_version_id: int
    versions: dict[int, FindingSighting]
    life: FindingHistory | None = None
    """None until the job has derived the state."""
    values: list[str] = field(default_factory=list)
    distinct: int = 0
    pattern: str = ""

    @property
    def certain(self) -> bool:
        """Whether the finding is a fact that needs no statistics."""
        return self.kind in CERTAIN_KINDS


def list_version_findings(
    *,
    project_id: int,
    model_id: int,
    version_ids: Collection[int] | None,
    environment: str,
    finding_ids: Collection[int] | None = None,
    with_lives: bool = True,
) -> list[FindingData]:
    """Return the findings of versions (None: all) in an environment, the newest first.

    `finding_ids` restricts the result. Two queries, or one without states.
    """
    seen = FindingVersion.objects.filter(
        finding__project_id=project_id, finding__model_id=model_id, environment=environment
    )
    if version_ids is not None:
        seen = seen.filter(version_id__in=version_ids)
    if finding_ids is not None:
        seen = seen.filter(finding_id__in=finding_ids)
    found = _read_sightings(seen, None if finding_ids is not None else MAX_FINDINGS)
    lives = _read_histories(found, environment) if with_lives else {}
    return [
        FindingData(
            id=finding.pk,
            kind=finding.kind,
            text=finding.text,
            where=finding.where,
            first_version_id=finding.first_version_id,
            versions=versions,
            life=lives.get(finding.pk),
            values=finding.values,
            distinct=finding.distinct,
            pattern=finding.pattern,
        )
        for finding, versions in found.values()
    ]


def _read_sightings(
    seen: QuerySet[FindingVersion], most: int | None
) -> dict[int, tuple[Finding, dict[int, FindingSighting]]]:
    """Return findings by id with their occurrences by version, from up to `most` rows."""
    same = Q(
        finding__instances__instance__version=F("version"),
        finding__instances__instance__environment=F("environment"),
    )
    rows = (
        seen.select_related("finding")
        .annotate(on_instances=Count("finding__instances", filter=same))
        .order_by("-last_seen_at", "pk")
    )
    found: dict[int, tuple[Finding, dict[int, FindingSighting]]] = {}
    for row in rows[:most]:
        versions = found.setdefault(row.finding_id, (row.finding, {}))[1]
        versions[row.version_id] = FindingSighting(
            row.count, row.on_instances, row.first_seen_at, row.last_seen_at, row.seconds
        )
    return found


def _read_histories(finding_ids: Collection[int], environment: str) -> dict[int, FindingHistory]:
    if not finding_ids:
        return {}
    rows = FindingLife.objects.filter(finding_id__in=list(finding_ids), environment=environment)
    seen = FindingInstance.objects.filter(
        finding=OuterRef("finding"), instance__environment=OuterRef("environment")
    )
    columns = (
        "finding_id",
        "state",
        "since_minute",
        "first_version__name",
        "last_version__name",
        "first_host",
        "last_host",
    )
    named = rows.annotate(
        first_host=_host(seen.order_by("first_seen_at", "instance__instance_id")),
        last_host=_host(seen.order_by("-last_seen_at", "-instance__instance_id")),
    )
    return {
        finding: FindingHistory(*facts[:4], *(host or "" for host in facts[4:]))
        for finding, *facts in named.values_list(*columns)
    }


def _host(seen: QuerySet[FindingInstance]) -> Subquery:
    return Subquery(seen.values("instance__host")[:1])
