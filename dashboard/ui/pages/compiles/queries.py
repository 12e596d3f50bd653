"""Data of the Compiles tab: a version with its causes of eager calls, findings, cache answers and
memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from dashboard.common import clock
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.selectors.compilations.cache_answers import (
    VersionCacheAnswers,
    parse_version_answers,
    query_version_answers,
)
from dashboard.fleet.selectors.findings.findings import FindingData, list_version_findings
from dashboard.fleet.selectors.instances.memory import MemoryData, parse_memory, query_memory
from dashboard.fleet.selectors.versions.eager_causes import (
    parse_version_eager_causes,
    query_version_eager_causes,
)
from dashboard.fleet.selectors.versions.version_series import Span
from dashboard.ui.pages.version.queries import (
    VersionData,
    VersionName,
    find_first_minute,
    read_version_data,
)

HOURLY_FROM_MINUTES = 1440
"""Length of a range from which memory is read by hours."""


@dataclass
class CompilesData:
    """Data of the tab; cache answers and memory are those of the range, by version."""

    version: VersionData
    why_eager: EagerBreakdown
    findings: list[FindingData]
    answered: list[VersionCacheAnswers]
    memory: dict[int, MemoryData]


def read_compiles_data(
    *,
    model: WatchedModel,
    deployment: Deployment,
    baseline: VersionName | None,
    span: Span | None = None,
    base_span: Span | None = None,
) -> CompilesData:
    """Reads the tab in four queries at most; without a span, no cache answers and no memory.
    `base_span` is the span of the baseline's cache answers."""
    pair = [deployment.version_id, *([baseline.id] if baseline else [])]
    place: dict[str, Any] = {"project_id": model.project_id, "environment": deployment.environment}
    now = clock.now()
    data, (eager, answered, before, memory) = read_version_data(
        model=model,
        deployment=deployment,
        baseline=baseline,
        more=(
            query_version_eager_causes(
                version_id=deployment.version_id,
                first=find_first_minute(deployment, now),
                now=clock.minute_of(now.timestamp()),
                **place,
            ),
            _query_answers(deployment.version_id, span, place),
            _query_answers(baseline.id, base_span or span, place) if baseline else None,
            query_memory(
                spans=dict.fromkeys(pair, span),
                hourly=span.last - span.first > HOURLY_FROM_MINUTES,
                **place,
            )
            if span
            else None,
        ),
    )
    return CompilesData(
        version=data,
        why_eager=parse_version_eager_causes(eager),
        findings=list_version_findings(
            model_id=model.pk, version_ids=pair, with_lives=False, **place
        ),
        answered=parse_version_answers([*answered, *before]),
        memory=parse_memory(memory),
    )


def _query_answers(
    version: int, span: Span | None, place: dict[str, Any]
) -> QuerySet[Any, Any] | None:
    if span is None:
        return None
    return query_version_answers(
        version_ids=[version], first=span.first, last=span.last + 1, **place
    )
