"""Selectors of ingest: length of the inbox, durable ranges of senders, and refusals."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, QuerySet, Sum

from dashboard.common import clock
from dashboard.ingest.models import (
    BucketLayout,
    FoldAttempt,
    InboxRow,
    Intake,
    PoisonReport,
    Refusal,
    Sender,
)
from dashboard.ingest.scrapers.parser import decode_bounds
from dashboard.ingest.sequence_ranges import Coverage
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project


@dataclass(frozen=True, slots=True)
class SenderState:
    """Durable and missing ranges of one instance."""

    instance_id: str
    ranges: list[tuple[int, int]]
    missing: int
    awaited: int
    clock_offset: float

    @classmethod
    def of(cls, sender: Sender) -> SenderState:
        """The state in a row. `missing` numbers were given up permanently; `awaited` numbers may
        still arrive."""
        coverage = Coverage.of(sender.ranges, sender.closed, sender.missing)
        return cls(
            sender.instance_id,
            coverage.ranges,
            coverage.missing,
            coverage.open_gaps,
            sender.clock_offset,
        )


def count_inbox_reports(project: Project | None = None) -> int:
    """Number of reports that wait to be folded, of one project or of all."""
    return _query_inbox(project).count()


def count_inbox_reports_up_to(project_id: int, most: int) -> int:
    """Number of the project's waiting reports, counted up to `most`."""
    return InboxRow.objects.filter(project_id=project_id).order_by()[:most].count()


def list_quarantine_reasons() -> list[tuple[str, int]]:
    """Reasons why reports of all projects are quarantined, most frequent first, each with its
    count."""
    reasons = (
        PoisonReport.objects.values_list("error")
        .annotate(count=Count("pk"))
        .order_by("-count", "error")
    )
    return [(str(error), int(count)) for error, count in reasons]


def read_inbox_age(project: Project | None = None) -> float:
    """Age of the oldest waiting report in seconds; 0 if none waits. Row IDs follow the order of
    arrival."""
    oldest = _query_inbox(project).order_by("id").values_list("received_at", flat=True).first()
    return max(0.0, (clock.now() - oldest).total_seconds()) if oldest else 0.0


def read_sender_state(*, project: Project, instance_id: str) -> SenderState | None:
    """State of the instance; None if it never sent a report."""
    sender = for_project(Sender, project).filter(instance_id=instance_id).first()
    return SenderState.of(sender) if sender else None


def read_sender_states(*, project: Project, instance_ids: list[str]) -> dict[str, SenderState]:
    """States of several instances, by instance ID."""
    return {
        sender.instance_id: SenderState.of(sender)
        for sender in for_project(Sender, project).filter(instance_id__in=instance_ids)
    }


def has_any_report(project: Project) -> bool:
    """True if any report of the project was ever acknowledged."""
    return for_project(Sender, project).exists()


def count_refusals_by_code(*, project: Project, hours: int = 24) -> dict[str, int]:
    """Number of refused requests and reports in the last `hours`, by code."""
    since = int(clock.unix() // 3600) - hours + 1
    rows = (
        for_project(Refusal, project)
        .filter(hour__gte=since)
        .values_list("code")
        .annotate(total=Sum("count"))
        .order_by("code")
    )
    return dict(rows)


def list_refusals_by_hour(*, project: Project, hours: int) -> list[tuple[int, str, int]]:
    """Hour since 1970, code and count of refusals in the last `hours`."""
    since = int(clock.unix() // 3600) - hours + 1
    return list(
        for_project(Refusal, project).filter(hour__gte=since).values_list("hour", "code", "count")
    )


def read_intake_by_hour(*, project: Project, hours: int) -> dict[int, tuple[int, int]]:
    """Acknowledged reports and bytes in the last `hours`, by hour since 1970. Hours without reports
    are absent."""
    since = int(clock.unix() // 3600) - hours + 1
    rows = (
        for_project(Intake, project).filter(hour__gte=since).values_list("hour", "reports", "bytes")
    )
    return {hour: (reports, size) for hour, reports, size in rows}


def count_poison_reports(project: Project | None = None) -> int:
    """Number of quarantined reports, of one project or of all."""
    return (PoisonReport.objects if project is None else for_project(PoisonReport, project)).count()


def count_fold_retries() -> int:
    """Number of failed folds that are being retried, in halves or whole."""
    return FoldAttempt.objects.exclude(attempts=1).count()


def _query_inbox(project: Project | None) -> QuerySet[InboxRow]:
    return InboxRow.objects.all() if project is None else for_project(InboxRow, project)


def read_bucket_layouts(names: Collection[str]) -> dict[str, tuple[float, ...]]:
    """Upper bounds of an engine's buckets, by layout name. Unknown layouts are absent."""
    return {
        row.name: tuple(decode_bounds(row.bounds))
        for row in BucketLayout.objects.filter(name__in=names)
    }
