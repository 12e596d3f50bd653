"""Findings of a model, by version: what is new, what goes on, what is gone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Q

from dashboard.fleet.models import Finding, FindingVersion

MOST = 400
CERTAIN = ("latched_eager", "oom", "parity", "compile_error")


@dataclass(frozen=True)
class Seen:
    """A finding in one version and environment."""

    count: int
    instances: int
    first_seen_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True)
class FindingFacts:
    """A finding, and what each version saw of it."""

    id: int
    kind: str
    text: str
    where: str
    first_version_id: int
    versions: dict[int, Seen]

    @property
    def certain(self) -> bool:
        """True for facts that need no statistics."""
        return self.kind in CERTAIN


def version_findings(*, project_id: int, model_id: int, version_ids: Collection[int], environment: str) -> list[FindingFacts]:
    """The findings that some versions saw in an environment, the newest first; one query."""
    same = Q(finding__instances__instance__version=F("version"), finding__instances__instance__environment=F("environment"))
    rows = (
        FindingVersion.objects.filter(
            finding__project_id=project_id, finding__model_id=model_id, version_id__in=version_ids, environment=environment
        )
        .select_related("finding")
        .annotate(on_instances=Count("finding__instances", filter=same))
        .order_by("-last_seen_at", "pk")
    )
    found: dict[int, tuple[Finding, dict[int, Seen]]] = {}
    for row in rows[:MOST]:
        versions = found.setdefault(row.finding_id, (row.finding, {}))[1]
        versions[row.version_id] = Seen(row.count, row.on_instances, row.first_seen_at, row.last_seen_at)
    return [
        FindingFacts(finding.pk, finding.kind, finding.text, finding.where, finding.first_version_id, versions)
        for finding, versions in found.values()
    ]
