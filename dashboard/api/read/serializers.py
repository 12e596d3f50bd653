"""Serializers: convert rows to the shapes that several endpoints return."""

from __future__ import annotations

from typing import Any

from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.api.read.schemas import (
    DeploymentShape,
    EvidenceShape,
    OnsetShape,
    SpanShape,
    VerdictShape,
)
from dashboard.common.clock import at_minute
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.versions.version_series import Span
from dashboard.regressions.evidence_reader import read_onset
from dashboard.regressions.models import Verdict

MAX_EVIDENCE_ROWS = 500


def span_shape(span: Span) -> SpanShape:
    """Converts minutes to times."""
    return SpanShape(first=at_minute(span.first), last=at_minute(span.last))


def deployment_shape(row: Deployment) -> DeploymentShape:
    """One period in which a version was live."""
    return DeploymentShape(
        environment=row.environment,
        started_at=at_minute(row.started_minute),
        last_data_at=at_minute(row.last_minute),
        ended_at=at_minute(row.ended_minute) if row.ended_minute is not None else None,
    )


def verdict_shape(row: Verdict) -> VerdictShape:
    """The verdict without its evidence."""
    deployment, baseline = row.deployment, row.baseline
    return VerdictShape(
        id=row.pk,
        model_id=deployment.model_id,
        model=deployment.model.name,
        version_id=deployment.version_id,
        version=deployment.version.name,
        environment=deployment.environment,
        kind=row.kind,
        previous_kind=row.previous_kind,
        sentence=row.sentence,
        cause=row.cause,
        baseline_version_id=baseline.version_id if baseline else None,
        baseline_version=baseline.version.name if baseline else None,
        data_until=at_minute(row.minute),
        since=at_minute(row.since_minute) if row.since_minute is not None else None,
        created_at=row.created_at,
        current=row.current or row.outlived is not None,
        last_known_at=row.outlived.known_at if row.outlived else None,
        open_alert=row.outlived.alert if row.outlived else None,
        evaluated_now=row.outlived.kind_now if row.outlived else row.kind,
    )


def onset_shape(row: Verdict) -> OnsetShape | None:
    """The times between which the change behind a verdict began."""
    found = read_onset(row.evidence)
    return OnsetShape(earliest=at_minute(found[0]), latest=at_minute(found[1])) if found else None


def evidence_shapes(evidence: Any) -> list[EvidenceShape]:
    """Evidence, strongest first, with the wording and values of alerts."""
    return [
        EvidenceShape(**line)
        for line in select_strongest_evidence(evidence, limit=MAX_EVIDENCE_ROWS)
    ]
