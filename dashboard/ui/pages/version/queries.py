"""Data of one version that its tabs share: processes, compilations, calls and numerics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import QuerySet

from dashboard.common import clock
from dashboard.common.raw_queries import Rows, fetch_rows_together
from dashboard.fleet.budgets import Budgets, resolve_budgets
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.fleet.selectors.compilations.compilations import (
    ProcessCacheAnswers,
    Recordings,
    VersionCompilation,
    parse_recordings,
    parse_version_compilations,
    query_recordings,
    query_version_compilations,
    read_process_answers,
)
from dashboard.fleet.selectors.instances.cold_starts import (
    MAX_STARTS,
    ProcessStart,
    read_process_starts,
)
from dashboard.fleet.selectors.numerics import (
    ParityRow,
    parse_version_parities,
    query_version_parities,
)
from dashboard.fleet.selectors.versions.compiled_share import (
    SeriesCalls,
    parse_series_calls,
    query_series_calls,
)

MAX_DAYS = 30
"""Calls of an older version are those of its last days."""
BEFORE_DEPLOYMENT = timedelta(days=1)
"""Compilations of a start precede the first minute with data."""


class VersionName(NamedTuple):
    """A version, with the fields that pages name."""

    id: int
    name: str


@dataclass
class VersionData:
    """Data of a version in one environment; `processes` are those of the version, its baseline and
    other versions of the model, newest first."""

    model: WatchedModel
    deployment: Deployment
    baseline: VersionName | None
    budgets: Budgets
    now: datetime
    processes: list[ProcessStart]
    events: list[VersionCompilation]
    events_cut: bool
    recordings: Recordings
    answers: list[ProcessCacheAnswers]
    served: list[SeriesCalls]
    parities: list[ParityRow]

    @property
    def version(self) -> ModelVersion:
        """The version."""
        return self.deployment.version

    @property
    def environment(self) -> str:
        """The environment of the deployment."""
        return self.deployment.environment

    @property
    def own(self) -> list[ProcessStart]:
        """Processes of the version in this environment."""
        return self._of(self.version.pk)

    @property
    def theirs(self) -> list[ProcessStart]:
        """Processes of the baseline."""
        return self._of(self.baseline.id) if self.baseline else []

    @property
    def own_calls(self) -> list[SeriesCalls]:
        """Series of the version in this environment."""
        return [
            one
            for one in self.served
            if one.version_id == self.version.pk and one.environment == self.environment
        ]

    @property
    def processes_cut(self) -> bool:
        """Whether older processes exist that were not read."""
        return len(self.own) + len(self.theirs) >= MAX_STARTS

    @property
    def live(self) -> bool:
        """Whether the version has traffic now."""
        return self.deployment.ended_minute is None

    @property
    def first_minute(self) -> int:
        """Start of the counted calls."""
        return find_first_minute(self.deployment, self.now)

    def _of(self, version_id: int) -> list[ProcessStart]:
        return [
            one
            for one in self.processes
            if one.version_id == version_id and one.environment == self.environment
        ]


def find_first_minute(deployment: Deployment, now: datetime) -> int:
    """The first minute of the counted calls of a deployment."""
    return max(deployment.started_minute, clock.minute_of(now.timestamp()) - MAX_DAYS * 1440)


def read_version_data(
    *,
    model: WatchedModel,
    deployment: Deployment,
    baseline: VersionName | None,
    more: Sequence[QuerySet[Any, Any] | None] = (),
) -> tuple[VersionData, list[Rows]]:
    """Reads the version in two queries, or in three if a compilation missed a cache. The rows of
    `more` are read in one statement with those of the version."""
    version, now = deployment.version_id, clock.now()
    pair = [version, *([baseline.id] if baseline else [])]
    place: dict[str, Any] = {"project_id": model.project_id, "environment": deployment.environment}
    processes = read_process_starts(model_id=model.pk, version_ids=pair, **place)
    since = clock.at_minute(deployment.started_minute) - BEFORE_DEPLOYMENT
    compiled, recorded, served, parities, *rest = fetch_rows_together(
        query_version_compilations(version_id=version, since=since, **place),
        query_recordings(version_id=version, since=since, **place),
        query_series_calls(
            model_id=model.pk,
            version_id=version,
            first=find_first_minute(deployment, now),
            now=clock.minute_of(now.timestamp()),
            **place,
        ),
        query_version_parities(version_ids=pair, **place),
        *more,
    )
    events, cut = parse_version_compilations(compiled)
    missed = any(event.miss for event in events)
    data = VersionData(
        model=model,
        deployment=deployment,
        baseline=baseline,
        budgets=resolve_budgets(model),
        now=now,
        processes=processes,
        events=events,
        events_cut=cut,
        recordings=parse_recordings(recorded),
        answers=_answers(model.project_id, processes) if missed else [],
        served=parse_series_calls(served),
        parities=parse_version_parities(parities),
    )
    return data, rest


def _answers(project_id: int, processes: Sequence[ProcessStart]) -> list[ProcessCacheAnswers]:
    """All of them, because a miss is compared with a warm start."""
    since = min((one.started_at for one in processes), default=None)
    return (
        read_process_answers(
            project_id=project_id, instance_ids=[one.id for one in processes], since=since
        )
        if since
        else []
    )
