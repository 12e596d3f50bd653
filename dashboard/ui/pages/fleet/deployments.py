"""Deployments and verdicts of the fleet in the range, as lanes: one per model with a change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.urls import reverse

from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.deployment_lane import (
    BASELINE,
    NOT_ENOUGH_DATA,
    DeploymentLane,
    LaneRow,
    LaneSpan,
    build_deployment_lane,
)
from dashboard.ui.pages.fleet.queries import FleetVerdicts
from dashboard.ui.pages.fleet.states import ModelState

SHOWN = 12


def build_fleet_lane(
    slug: str, states: Sequence[ModelState], said: FleetVerdicts, window: BinnedRange
) -> tuple[DeploymentLane, int]:
    """The lanes of the most urgent models with a change, and the number of all with a change."""
    changes: dict[int, list[Verdict]] = defaultdict(list)
    for verdict in reversed(said.changes):
        changes[verdict.deployment_id].append(verdict)
    changed = [one for one in states if _has_changed(one, changes, window)]
    changed.sort(key=lambda one: (one.urgency, -_newest_start(one), one.model.name))
    rows = [_lane(slug, one, changes, said, window) for one in changed[:SHOWN]]
    return build_deployment_lane(rows, window.start, window.end + 1, "model"), len(changed)


def _has_changed(one: ModelState, changes: dict[int, list[Verdict]], window: BinnedRange) -> bool:
    return any(run.started_minute > window.start or changes.get(run.pk) for run in one.deployments)


def _newest_start(one: ModelState) -> int:
    return max((run.started_minute for run in one.deployments), default=0)


def _lane(
    slug: str,
    one: ModelState,
    changes: dict[int, list[Verdict]],
    said: FleetVerdicts,
    window: BinnedRange,
) -> LaneRow:
    environment = one.focus.environment if one.focus else ""
    runs = [run for run in one.deployments if run.environment == environment]
    spans: list[LaneSpan] = []
    for place, run in enumerate(runs):
        later = runs[place + 1].started_minute if place + 1 < len(runs) else None
        ended = run.ended_minute + 1 if run.ended_minute is not None else None
        end = min(minute for minute in (later, ended, window.end + 1) if minute is not None)
        spans += _spans(run, end, changes.get(run.pk, []), said)
    return LaneRow(
        one.model.name,
        spans,
        href=reverse("model", args=[slug, one.model.pk]),
        alerts=[_mark(alert) for alert in one.alerts],
    )


def _spans(
    run: Deployment, end: int, changes: list[Verdict], said: FleetVerdicts
) -> list[LaneSpan]:
    """The states of one version. Before its first change in the range it has the state that the
    change names, or the current one; without either it is a baseline."""
    current = said.current.get(run.pk)
    if changes:
        first = changes[0].previous_kind or NOT_ENOUGH_DATA
    else:
        first = current.kind if current is not None else BASELINE
    begins = [(run.started_minute, first)] + [
        (clock.minute_of(one.created_at.timestamp()), one.kind) for one in changes
    ]
    spans = []
    for place, (begin, kind) in enumerate(begins):
        until = min(begins[place + 1][0], end) if place + 1 < len(begins) else end
        if until > begin:
            spans.append(LaneSpan(begin, until, kind, run.version.name))
    return spans


def _mark(alert: Alert) -> tuple[int, str]:
    return clock.minute_of(alert.opened_at.timestamp()), alert.worst or alert.severity
