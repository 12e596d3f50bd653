"""The two lists next to the Fleet table: activity and blind spots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from heapq import nlargest
from operator import itemgetter

from dashboard.common import clock
from dashboard.fleet.models import Deployment, InstanceState
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.instances.instance_states import (
    describe_end,
    explain_missing_capabilities,
    has_failed,
    list_missing_capabilities,
)
from dashboard.fleet.selectors.instances.recent_instances import RecentInstance
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange, FleetData
from dashboard.regressions.models import Verdict, VerdictKind
from dashboard.ui.pages.fleet.rows import FleetRow
from dashboard.ui.pages.fleet.states import States
from dashboard.vocabulary import numbers

SHOWN = 12
MODELS_LISTED = 3
"""Maximum number of models with their own line per kind of blind spot; more models share one
line."""


@dataclass(frozen=True)
class FleetChange:
    """One line of the activity list."""

    at: datetime
    mark: str
    subject: str
    text: str
    model_id: int


@dataclass(frozen=True)
class BlindSpot:
    """Missing data with the reason."""

    mark: str
    what: str
    why: str
    since: datetime | None = None


def list_changes(
    *, facts: FleetData, verdicts: Sequence[Verdict], window: BinnedRange
) -> list[FleetChange]:
    """Deployments and verdict changes in the range, newest first."""
    names = {model.pk: model.name for model in facts.models}
    found: list[tuple[datetime, Callable[[], FleetChange]]] = [
        (one.created_at, partial(_verdict_change, one)) for one in verdicts
    ]
    for one in facts.deployments:
        if one.model_id not in names:
            continue
        if one.started_minute > window.start:
            found.append((clock.at_minute(one.started_minute), partial(_deployed, one, names)))
        if one.ended_minute is not None and one.ended_minute > window.start:
            found.append((clock.at_minute(one.ended_minute), partial(_ended, one, names)))
    newest = nlargest(SHOWN, found, key=itemgetter(0))
    return [build() for _, build in newest]


def list_blind_spots(
    *, rows: Sequence[FleetRow], facts: FleetData, instance_states: States
) -> list[BlindSpot]:
    """Silent, failed and blind instances by model, then calls of the shown models without a
    comparison."""
    names = {model.pk: model.name for model in facts.models}
    silent: dict[int, list[RecentInstance]] = defaultdict(list)
    blind: dict[int, list[RecentInstance]] = defaultdict(list)
    failed: dict[int, list[RecentInstance]] = defaultdict(list)
    for instance in facts.instances:
        if instance.model_id not in names:
            continue
        if instance_states[instance.pk] == InstanceState.SILENT:
            silent[instance.model_id].append(instance)
        elif instance_states[instance.pk] == InstanceState.ENDED:
            if has_failed(instance):
                failed[instance.model_id].append(instance)
        elif list_missing_capabilities(instance):
            blind[instance.model_id].append(instance)
    found = _by_model(names, silent, _silent, "last report, no end reported")
    found += _by_model(names, failed, _failed, "ended with an error or were killed")
    found += _by_model(names, blind, _blind, "do not report compilations")
    for row in rows:
        for share, why in row.not_compared[:1]:
            subject = f"{share} of {row.state.model.name}'s calls"
            found.append(BlindSpot("not_enough_data", subject, why))
    return found[:SHOWN]


def _verdict_change(verdict: Verdict) -> FleetChange:
    model = verdict.deployment.model
    kind = VerdictKind(verdict.kind).label if verdict.kind in VerdictKind.values else verdict.kind
    version = verdict.deployment.version.name
    text = f"changed to {kind}: {verdict.sentence.removeprefix(f'Roll back {version}: ')}"
    return FleetChange(verdict.created_at, verdict.kind, f"{model.name} {version}", text, model.pk)


def _deployed(one: Deployment, names: dict[int, str]) -> FleetChange:
    text = f"deployed to {one.environment}" + (
        " (reported by CI)" if one.source == "posted" else " (detected from traffic)"
    )
    return FleetChange(
        clock.at_minute(one.started_minute),
        "deployment",
        f"{names[one.model_id]} {one.version.name}",
        text,
        one.model_id,
    )


def _ended(one: Deployment, names: dict[int, str]) -> FleetChange:
    at = clock.at_minute(one.ended_minute or one.last_minute)
    return FleetChange(
        at,
        "state-silent",
        f"{names[one.model_id]} {one.version.name}",
        f"stopped receiving traffic in {one.environment}",
        one.model_id,
    )


def _by_model(
    names: Mapping[int, str],
    groups: Mapping[int, list[RecentInstance]],
    line: Callable[[str, list[RecentInstance]], BlindSpot],
    why: str,
) -> list[BlindSpot]:
    """One line per model, or a single line for many models: 41 lines about one network fault would
    hide the other blind spots."""
    if len(groups) <= MODELS_LISTED:
        return [line(names[model], group) for model, group in groups.items()]
    whole = line("", [one for group in groups.values() for one in group])
    largest = sorted(groups, key=lambda model: (-len(groups[model]), names[model]))[:MODELS_LISTED]
    listed = ", ".join(f"{names[model]} ({len(groups[model])})" for model in largest)
    return [
        replace(
            whole,
            why=f"{len(groups)} models: {listed} and {len(groups) - MODELS_LISTED} more: {why}",
        )
    ]


def _silent(name: str, group: Sequence[RecentInstance]) -> BlindSpot:
    oldest = min(group, key=lambda instance: instance.last_seen_at)
    place = f"{name}, {process_name(oldest)}" if len(group) == 1 else name
    doing = (
        f", then compiling {oldest.compiling_frame}".rstrip() if oldest.compiling_for > 0 else ""
    )
    return BlindSpot(
        "state-silent",
        numbers.plural(len(group), "silent instance"),
        f"{place}: last report{doing}, no end reported",
        oldest.last_seen_at,
    )


def _failed(name: str, group: Sequence[RecentInstance]) -> BlindSpot:
    newest = max(group, key=lambda instance: instance.last_seen_at)
    place = f"{name}, {process_name(newest)}" if len(group) == 1 else name
    how = ", ".join(dict.fromkeys(map(describe_end, group)))
    return BlindSpot(
        "failed",
        numbers.plural(len(group), "failed instance"),
        f"{place}: {how}",
        newest.last_seen_at,
    )


def _blind(name: str, group: Sequence[RecentInstance]) -> BlindSpot:
    missing = " and ".join(
        sorted(
            {
                fact.replace("_", " ")
                for instance in group
                for fact in list_missing_capabilities(instance)
            }
        )
    )
    reasons = list(dict.fromkeys(filter(None, map(explain_missing_capabilities, group))))
    why = f", {reasons[0]}" if len(reasons) == 1 else ""
    return BlindSpot(
        "state-blind", numbers.plural(len(group), "blind instance"), f"{name}: no {missing}{why}"
    )
