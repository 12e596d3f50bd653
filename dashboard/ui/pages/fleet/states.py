"""State of each model of the fleet: verdict, versions, instances and alerts, without values.

Filters, order and groups use these states of all models; only the models of one page get values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.fleet.models import Deployment, InstanceState, WatchedModel
from dashboard.fleet.selectors.instances.instance_states import SEVERITY
from dashboard.fleet.selectors.instances.recent_instances import RecentInstance
from dashboard.fleet.selectors.versions.data_age import stale_minutes
from dashboard.fleet.selectors.versions.fleet_data import FleetData
from dashboard.regressions.models import Verdict, VerdictKind
from dashboard.ui.pages.fleet.queries import FleetVerdicts
from dashboard.vocabulary.severity import order_by_urgency, rank_severity

UNCOUNTED = (InstanceState.STARTING, InstanceState.ENDED)
UNKNOWN_GPU = "no GPU reported"
States = Mapping[int, InstanceState]
"""State by instance id."""


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
class ModelState:
    """One model. `focus` is the version of the row, `before` its baseline. `accepted`: an operator
    accepted the version as the new baseline, so the verdict remains but needs no action."""

    model: WatchedModel
    deployments: list[Deployment]
    focus: Deployment | None
    before: Deployment | None
    verdict: Verdict | None
    alerts: list[Alert]
    instances: list[InstanceGroup]
    gpus: list[str]
    accepted: bool = False

    @property
    def kind(self) -> str:
        """The kind of the verdict."""
        return self.verdict.kind if self.verdict else VerdictKind.NOT_ENOUGH_DATA

    @property
    def sentence(self) -> str:
        """The verdict as a sentence, or the reason why there is none."""
        if self.verdict:
            return self.verdict.sentence
        if self.focus is None or not self.live:
            return "No version has reported in the last 30 minutes."
        return (
            f"{self.focus.version.name} is waiting for its first verdict, "
            "which needs a few minutes of data."
        )

    @cached_property
    def live(self) -> list[Deployment]:
        """Deployments with traffic."""
        return [one for one in self.deployments if one.ended_minute is None]

    @cached_property
    def environments(self) -> list[str]:
        """Environments with traffic."""
        return sorted({one.environment for one in self.live})

    @property
    def gpu(self) -> str:
        """GPU types without the vendor: "H200, L4"."""
        return ", ".join(name.removeprefix("NVIDIA ") for name in self.gpus)

    @property
    def urgency(self) -> int:
        """Rank by urgency; an accepted version ranks as NOT ENOUGH DATA."""
        calm = self.accepted and self.kind != VerdictKind.HEALTHY
        return order_by_urgency(VerdictKind.NOT_ENOUGH_DATA if calm else self.kind)

    @property
    def urgent(self) -> bool:
        """Whether the sentence is always shown."""
        return bool(rank_severity(self.kind))

    @cached_property
    def since(self) -> datetime | None:
        """Start of the current statement, else of the version."""
        if self.verdict and self.verdict.since_minute:
            return clock.at_minute(self.verdict.since_minute)
        if self.verdict:
            return self.verdict.created_at
        return clock.at_minute(self.focus.started_minute) if self.focus else None

    @property
    def stale(self) -> bool:
        """Whether the verdict uses old data."""
        return self.verdict is not None and stale_minutes(self.verdict.deployment) is not None

    @cached_property
    def instance_count(self) -> int:
        """Number of instances that reported in the last half hour and have not ended; starting
        processes do not count."""
        return sum(group.count for group in self.instances if group.state not in UNCOUNTED)

    @property
    def reporting_count(self) -> int:
        """The same without silent instances."""
        silent = sum(group.count for group in self.instances if group.state == InstanceState.SILENT)
        return self.instance_count - silent

    @property
    def troubled(self) -> list[InstanceGroup]:
        """Groups that are neither healthy nor ended, most serious first."""
        calm = (InstanceState.HEALTHY, InstanceState.ENDED)
        return [group for group in self.instances if group.state not in calm]

    @property
    def standing(self) -> list[tuple[str, int]]:
        """Number of open, acknowledged and snoozed alerts, because only open alerts wait for an
        operator."""
        counts = Counter(alert.state for alert in self.alerts)
        return [(state.label.lower(), counts[state]) for state in AlertState if counts[state]]


def build_states(
    *,
    facts: FleetData,
    said: FleetVerdicts,
    alerts: Iterable[Alert],
    states: States,
    everywhere: bool,
) -> list[ModelState]:
    """One state per model; with a selected environment, only models that run there. `states` are
    the instances' states."""
    deployments: dict[int, list[Deployment]] = defaultdict(list)
    instances: dict[int, list[RecentInstance]] = defaultdict(list)
    open_alerts: dict[int, list[Alert]] = defaultdict(list)
    for deployment in facts.deployments:
        deployments[deployment.model_id].append(deployment)
    for instance in facts.instances:
        instances[instance.model_id].append(instance)
    for alert in alerts:
        open_alerts[alert.deployment.model_id].append(alert)
    return [
        _build_state(
            model, deployments[model.pk], instances[model.pk], open_alerts[model.pk], said, states
        )
        for model in facts.models
        if everywhere or deployments[model.pk]
    ]


def _build_state(
    model: WatchedModel,
    deployments: list[Deployment],
    instances: list[RecentInstance],
    alerts: list[Alert],
    said: FleetVerdicts,
    states: States,
) -> ModelState:
    judged = [one for one in deployments if one.ended_minute is None or one.pk in said.current]
    focus = _focus(judged, said) or (deployments[-1] if deployments else None)
    verdict = said.current.get(focus.pk) if focus else None
    return ModelState(
        model=model,
        deployments=deployments,
        focus=focus,
        before=(verdict.baseline if verdict else None) or _before(deployments, focus),
        verdict=verdict,
        alerts=alerts,
        instances=_group_instances(instances, states),
        gpus=sorted({one.gpu for one in instances if one.gpu}),
        accepted=focus is not None and focus.pk in said.accepted,
    )


def _focus(live: Iterable[Deployment], said: FleetVerdicts) -> Deployment | None:
    """The version of the row: the newest live version, unless another version has a worse
    verdict."""
    return max(
        live,
        key=lambda one: (
            not one.version.is_other,
            one.ended_minute is None,
            rank_severity(said.current[one.pk].kind) if one.pk in said.current else 0,
            one.started_minute,
        ),
        default=None,
    )


def _before(deployments: Sequence[Deployment], focus: Deployment | None) -> Deployment | None:
    if focus is None:
        return None
    earlier = [
        one
        for one in deployments
        if one.environment == focus.environment
        and not one.version.is_other
        and one.started_minute < focus.started_minute
    ]
    return earlier[-1] if earlier else None


def _group_instances(instances: Iterable[RecentInstance], states: States) -> list[InstanceGroup]:
    counts: Counter[InstanceState] = Counter()
    newest: dict[InstanceState, datetime] = {}
    for instance in instances:
        state = states[instance.pk]
        counts[state] += 1
        newest[state] = max(newest.get(state, instance.last_seen_at), instance.last_seen_at)
    return [
        InstanceGroup(state, counts[state], newest[state]) for state in SEVERITY if counts[state]
    ]
