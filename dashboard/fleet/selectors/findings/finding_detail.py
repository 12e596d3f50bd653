"""Finding detail: one finding by version and instance, with compilations at its location and
versions without it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, F, Q

from dashboard.common import clock
from dashboard.fleet.models import (
    CompileEvent,
    Deployment,
    Finding,
    FindingInstance,
    FindingLife,
    FindingVersion,
)
from dashboard.fleet.names import NAME_COLUMNS, process_name

MOST_INSTANCES, MOST_COMPILATIONS = 100, 5000
COMPILATION_RETENTION = timedelta(days=35)
_SOURCE_LOCATION = re.compile(r"^(?P<file>.+?):(?P<line>\d+)(?: in (?P<frame>.+))?$", re.DOTALL)


@dataclass(frozen=True)
class VersionSighting:
    """Occurrences in one version and environment."""

    version_id: int
    version: str
    environment: str
    count: int
    seconds: float
    instances: int
    first_seen_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True)
class InstanceSighting:
    """Occurrences in one process."""

    instance_id: str
    label: str
    host: str
    rank: int
    pid: int | None
    role: str
    gpu: str
    version_id: int
    version: str
    environment: str
    count: int
    first_seen_at: datetime
    last_seen_at: datetime

    @property
    def name(self) -> str:
        """Display name of the process."""
        return process_name(self)


class FrameCompilation(NamedTuple):
    """One compilation at the location of the finding."""

    version_id: int
    environment: str
    instance_id: int
    compile_id: str
    frame: str
    kind: str
    reason: str
    outcome: str
    at: datetime
    reason_kind: str
    entries: int | None
    limit: int | None


class VersionRun(NamedTuple):
    """A version that reported, in minutes since 1970; `live` is True while it runs."""

    version_id: int
    version: str
    environment: str
    first: int
    last: int
    live: bool


@dataclass(frozen=True)
class FindingDetail:
    """All data of the finding page."""

    finding: Finding
    lives: list[FindingLife]
    versions: list[VersionSighting]
    instances: list[InstanceSighting]
    instances_total: int
    compiled: list[FrameCompilation]
    ran: list[VersionRun]

    @property
    def place(self) -> tuple[str, int] | None:
        """File and line of the location, None if it is another kind of text."""
        return parse_source_location(self.finding.where)


def parse_source_location(where: str) -> tuple[str, int] | None:
    """Parse file and line of a location in the agents' format."""
    found = _SOURCE_LOCATION.match(where)
    return (found["file"], int(found["line"])) if found and len(found["line"]) < 10 else None


def read_finding_detail(*, project_id: int, finding_id: int) -> FindingDetail | None:
    """Return the finding, or None if the project does not have it; seven queries."""
    rows = Finding.objects.filter(project_id=project_id, pk=finding_id).select_related(
        "model", "first_version", "last_version"
    )
    finding = rows.first()
    if finding is None:
        return None
    return FindingDetail(
        finding=finding,
        lives=list(
            FindingLife.objects.filter(finding=finding)
            .select_related("first_version", "last_version")
            .order_by("environment")
        ),
        versions=_versions(finding),
        instances=_instances(finding),
        instances_total=FindingInstance.objects.filter(finding=finding).count(),
        compiled=_read_compilations(finding),
        ran=_read_runs(finding),
    )


def _versions(finding: Finding) -> list[VersionSighting]:
    same = Q(
        finding__instances__instance__version=F("version"),
        finding__instances__instance__environment=F("environment"),
    )
    rows = FindingVersion.objects.filter(finding=finding).annotate(
        on_instances=Count("finding__instances", filter=same)
    )
    columns = (
        "version_id",
        "version__name",
        "environment",
        "count",
        "seconds",
        "on_instances",
        "first_seen_at",
        "last_seen_at",
    )
    return [
        VersionSighting(*row)
        for row in rows.order_by("-first_seen_at", "-pk").values_list(*columns)
    ]


def _instances(finding: Finding) -> list[InstanceSighting]:
    rows = FindingInstance.objects.filter(finding=finding).order_by("-last_seen_at", "-pk")
    of_instance = (*NAME_COLUMNS, "gpu", "version_id", "version__name", "environment")
    columns = (
        *(f"instance__{name}" for name in of_instance),
        "count",
        "first_seen_at",
        "last_seen_at",
    )
    return [InstanceSighting(*row) for row in rows.values_list(*columns)[:MOST_INSTANCES]]


def _read_compilations(finding: Finding) -> list[FrameCompilation]:
    """Return the newest compilations of the finding's frame, of all versions of the model."""
    place = parse_source_location(finding.where)
    if place is None:
        return []
    since = max(finding.first_seen_at - timedelta(days=1), clock.now() - COMPILATION_RETENTION)
    rows = CompileEvent.objects.filter(
        project_id=finding.project_id,
        day__gte=int(since.timestamp() // 86400),
        version_id__in=finding.model.versions.values("pk"),
        file=place[0],
        line=place[1],
    )
    columns = (
        *(
            "version_id",
            "environment",
            "instance_id",
            "compile_id",
            "frame",
            "kind",
            "reason",
            "outcome",
            "at",
        ),
        *("reason_kind", "entries", "entry_limit"),
    )
    return [
        FrameCompilation(*row)
        for row in rows.order_by("-at", "-seq", "-number").values_list(*columns)[:MOST_COMPILATIONS]
    ]


def _read_runs(finding: Finding) -> list[VersionRun]:
    """Return the deployments of the model since the first sighting, newest first.

    The collective version `other` is excluded.
    """
    since = clock.minute_of(finding.first_seen_at.timestamp())
    rows = Deployment.objects.filter(
        model_id=finding.model_id, last_minute__gte=since
    ).select_related("version")
    return [
        VersionRun(
            row.version_id,
            row.version.name,
            row.environment,
            row.started_minute,
            row.last_minute,
            row.ended_minute is None,
        )
        for row in rows.order_by("-started_minute", "-pk")
        if not row.version.is_other
    ]
