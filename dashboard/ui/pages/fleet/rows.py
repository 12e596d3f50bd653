"""Rows of the Fleet page from facts, verdicts and alerts, most urgent first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from dashboard.alerts.models import Alert, AlertState
from dashboard.fleet.budgets import resolve_budgets
from dashboard.fleet.models import Deployment, InstanceState, WatchedModel
from dashboard.fleet.selectors.instances.instance_states import SEVERITY
from dashboard.fleet.selectors.instances.recent_instances import RecentInstance
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange, FleetData, VersionData
from dashboard.regressions.models import Verdict, VerdictKind
from dashboard.ui.charts.sparkline import Spark, spark_draw
from dashboard.ui.layout.change_rows import ChangeRow, build_change_rows
from dashboard.ui.pages.fleet.cells import (
    Cell,
    ColdStartCell,
    build_quantile_cell,
    cold_cell,
    peak_cell,
    share_cell,
)
from dashboard.ui.pages.fleet.queries import FleetVerdicts
from dashboard.vocabulary.severity import order_by_urgency, rank_severity

SHAPES = 6
UNCOUNTED = (InstanceState.STARTING, InstanceState.ENDED)
States = Mapping[int, InstanceState]
"""State by instance id."""


@dataclass(frozen=True)
class LiveVersion:
    """A version with traffic and its share of calls; `x` and `width` draw its part of the bar."""

    id: int
    role: int
    name: str
    share: float | None
    x: str = "0"
    width: str = "0"


@dataclass(frozen=True)
class InstanceGroup:
    """The instances in one state."""

    state: InstanceState
    count: int
    newest: datetime

    @property
    def mark(self) -> str:
        """The name of the mark's shape."""
        return f"state-{self.state.value}"


@dataclass
class FleetRow:
    """One model of the table."""

    model: WatchedModel
    kind: str
    sentence: str
    verdict: Verdict | None
    environments: list[str]
    versions: list[LiveVersion]
    spark: Spark
    p50: Cell
    p99: Cell
    compiled: Cell
    cache: Cell
    cold: ColdStartCell | None
    peak: Cell
    instances: list[InstanceGroup]
    alerts: list[Alert]
    evidence: list[ChangeRow] = field(default_factory=list)
    region: str = ""
    """The region of calls and latency."""
    one_region: bool = True
    cold_budget: float | None = None
    """The cold-start budget in force, even without a known start."""
    """Whether the model has no other region."""
    accepted: bool = False
    """Whether an operator accepted this version as the new baseline: the verdict remains, but needs
    no action."""
    called: bool = False
    """Whether a version received calls; the sparkline is empty if only a bound of p50 is known."""

    @property
    def calm(self) -> bool:
        """Whether nothing needs attention."""
        return self.kind in (VerdictKind.HEALTHY, VerdictKind.NOT_ENOUGH_DATA) and not self.alerts

    @property
    def instance_count(self) -> int:
        """Number of instances that reported in the last half hour and have not ended; starting
        processes do not count."""
        return sum(group.count for group in self.instances if group.state not in UNCOUNTED)

    @property
    def troubled(self) -> list[InstanceGroup]:
        """Groups that are neither healthy nor ended, most serious first."""
        return [
            group
            for group in self.instances
            if group.state not in (InstanceState.HEALTHY, InstanceState.ENDED)
        ]

    @property
    def standing(self) -> list[tuple[str, int]]:
        """Number of open, acknowledged and snoozed alerts, because only open alerts wait for an
        operator."""
        counts = Counter(alert.state for alert in self.alerts)
        return [(state.label.lower(), counts[state]) for state in AlertState if counts[state]]

    @property
    def unacknowledged(self) -> list[Alert]:
        """Open alerts without an acknowledgement."""
        return [alert for alert in self.alerts if alert.state == AlertState.OPEN]


def fleet_rows(
    *,
    facts: FleetData,
    said: FleetVerdicts,
    alerts: Sequence[Alert],
    window: BinnedRange,
    states: States,
    everywhere: bool,
) -> list[FleetRow]:
    """One row per model; with a selected environment, only models that run there. `states` are the
    instances' states."""
    deployments: dict[int, list[Deployment]] = defaultdict(list)
    instances: dict[int, list[RecentInstance]] = defaultdict(list)
    for deployment in facts.deployments:
        deployments[deployment.model_id].append(deployment)
    for instance in facts.instances:
        instances[instance.model_id].append(instance)
    open_alerts: dict[int, list[Alert]] = defaultdict(list)
    for alert in alerts:
        open_alerts[alert.deployment.model_id].append(alert)
    rows = [
        _row(
            model,
            deployments[model.pk],
            instances[model.pk],
            open_alerts[model.pk],
            facts.versions,
            said,
            window,
            states,
        )
        for model in facts.models
        if everywhere or deployments[model.pk]
    ]
    return sorted(rows, key=lambda row: (_urgency(row), -len(row.alerts), row.model.name.lower()))


def _urgency(row: FleetRow) -> int:
    kind = (
        VerdictKind.NOT_ENOUGH_DATA
        if row.accepted and row.kind != VerdictKind.HEALTHY
        else row.kind
    )
    return order_by_urgency(kind)


def _row(
    model: WatchedModel,
    deployments: list[Deployment],
    instances: list[RecentInstance],
    alerts: list[Alert],
    versions: dict[int, VersionData],
    said: FleetVerdicts,
    window: BinnedRange,
    states: States,
) -> FleetRow:
    live = [deployment for deployment in deployments if deployment.ended_minute is None]
    judged = [one for one in deployments if one.ended_minute is None or one.pk in said.current]
    focus = _focus(judged, said) or (deployments[-1] if deployments else None)
    verdict = said.current.get(focus.pk) if focus else None
    before = verdict.baseline if verdict and verdict.baseline else _before(deployments, focus)
    roles = _roles(deployments, focus, before)
    evidence = build_change_rows(verdict.evidence, verdict.kind) if verdict else []
    newest = versions.get(focus.version_id, VersionData()) if focus else VersionData()
    older = versions.get(before.version_id) if before else None
    return FleetRow(
        model=model,
        accepted=focus is not None and focus.pk in said.accepted,
        kind=verdict.kind if verdict else VerdictKind.NOT_ENOUGH_DATA,
        sentence=verdict.sentence if verdict else _unjudged(focus, live),
        verdict=verdict,
        environments=sorted({deployment.environment for deployment in live}),
        versions=_adoption(live, roles, versions),
        spark=_spark(deployments, roles, versions, window),
        p50=build_quantile_cell(newest, 0.5, evidence, older),
        p99=build_quantile_cell(newest, 0.99, evidence, older),
        compiled=share_cell(
            newest.compiled_share, older.compiled_share if older else None, evidence, ("eager",)
        ),
        cache=share_cell(
            newest.cache_hit,
            older.cache_hit if older else None,
            evidence,
            ("cache", "cache_misses"),
        ),
        cold=cold_cell(
            newest.cold_start,
            older.cold_start if older else None,
            resolve_budgets(model).cold_start,
        ),
        peak=peak_cell(newest.peak, older.peak if older else None, evidence),
        instances=_groups(instances, states),
        alerts=alerts,
        evidence=evidence,
        region=newest.region,
        one_region=newest.one_region,
        cold_budget=resolve_budgets(model).cold_start,
        called=any(
            versions[one.version_id].calls for one in deployments if one.version_id in versions
        ),
    )


def _unjudged(focus: Deployment | None, live: list[Deployment]) -> str:
    if focus is None or not live:
        return "No version has reported in the last 30 minutes."
    return (
        f"{focus.version.name} is waiting for its first verdict, which needs a few minutes of data."
    )


def _focus(live: Iterable[Deployment], said: FleetVerdicts) -> Deployment | None:
    """The version of the row: the newest live version, unless another version has a worse
    verdict."""
    loud = {
        deployment_id: rank_severity(verdict.kind)
        for deployment_id, verdict in said.current.items()
    }
    return max(
        live,
        key=lambda one: (
            not one.version.is_other,
            one.ended_minute is None,
            loud.get(one.pk, 0),
            one.started_minute,
        ),
        default=None,
    )


def _before(deployments: Sequence[Deployment], focus: Deployment | None) -> Deployment | None:
    if focus is None:
        return None
    here = [
        one
        for one in deployments
        if one.environment == focus.environment and not one.version.is_other
    ]
    earlier = [one for one in here if one.started_minute < focus.started_minute]
    return earlier[-1] if earlier else None


def _roles(
    deployments: Sequence[Deployment], focus: Deployment | None, before: Deployment | None
) -> dict[int, int]:
    """Role by version: 1 is the baseline, 2 the version of the row, then the others in order of
    deployment."""
    roles: dict[int, int] = {}
    if before is not None:
        roles[before.version_id] = 1
    if focus is not None:
        roles[focus.version_id] = 2
    for deployment in deployments:
        roles.setdefault(
            deployment.version_id, min(3 + sum(role > 2 for role in roles.values()), SHAPES)
        )
    return roles


def _adoption(
    live: Sequence[Deployment], roles: dict[int, int], versions: dict[int, VersionData]
) -> list[LiveVersion]:
    """Live versions, newest first; shares refer to the calls of the last minutes."""
    named = {deployment.version_id: deployment.version.name for deployment in reversed(live)}
    order = sorted(named, key=lambda version: (roles[version] != 2, roles[version]))
    calls = {
        version: versions[version].recent_calls if version in versions else 0 for version in order
    }
    total = sum(calls.values())
    found, x = [], 0.0
    for version in order:
        share = calls[version] / total if total else None
        width = 100 * (share or 0.0)
        found.append(
            LiveVersion(
                version,
                roles[version],
                named[version],
                share,
                f"{x:.1f}",
                f"{max(width - 0.6, 0.0):.1f}",
            )
        )
        x += width
    return found


def _spark(
    deployments: Sequence[Deployment],
    roles: dict[int, int],
    versions: dict[int, VersionData],
    window: BinnedRange,
) -> Spark:
    order = sorted(
        {one.version_id for one in deployments},
        key=lambda version: (roles[version] == 2, -roles[version]),
    )
    series = [
        (
            roles[version],
            {
                slot: (point.p50 / point.weight, point.p99 / point.weight)
                for slot, point in versions[version].points.items()
            },
        )
        for version in order
        if version in versions
    ]
    marks = [
        (one.started_minute - window.start) / window.bin
        for one in deployments
        if one.started_minute > window.start
    ]
    spark = spark_draw(series, window.bins, marks)
    return replace(spark, since=window.start + spark.first * window.bin) if spark.first else spark


def _groups(instances: Iterable[RecentInstance], states: States) -> list[InstanceGroup]:
    counts: Counter[InstanceState] = Counter()
    newest: dict[InstanceState, datetime] = {}
    for instance in instances:
        state = states[instance.pk]
        counts[state] += 1
        newest[state] = max(newest.get(state, instance.last_seen_at), instance.last_seen_at)
    return [
        InstanceGroup(state, counts[state], newest[state]) for state in SEVERITY if counts[state]
    ]
