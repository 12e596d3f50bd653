"""What the Switch page shows: who asked for what, which instances applied it, and what changed since; and what other pages say of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dashboard.alerts.kill_switch.health_check import lately
from dashboard.alerts.kill_switch.models import Switch, SwitchEvent
from dashboard.alerts.kill_switch.rollout import LIVE, symmetric, verbs_allowed
from dashboard.common import clock
from dashboard.fleet.models import CommandReceipt, Instance, WatchedModel
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.instances.role_filters import ended, helping
from dashboard.projects.command_key import command_key

SHOWN, MOST = 10, 200
SAYS = {
    "ready": "would follow",
    "accepted": "has taken it",
    "applied": "in force",
    "ended": "as before",
    "refused": "refused",
}


def switches_live(*, project_id: int, model_id: int | None = None, environment: str = "") -> list[Switch]:
    """What is switched now, in a project, of a model or in an environment; the oldest first, in one query."""
    rows = Switch.objects.filter(project_id=project_id, ended_at=None)
    if model_id is not None:
        rows = rows.filter(version__model_id=model_id)
    if environment:
        rows = rows.filter(environment=environment)
    return list(rows.select_related("version__model").order_by("asked_at", "pk"))


@dataclass
class InstanceRow:
    """One process that reports, and its newest word."""

    instance: Instance
    verbs: list[str]
    receipt: CommandReceipt | None = None

    @property
    def name(self) -> str:
        """How people call it."""
        return process_name(self.instance)

    @property
    def says(self) -> str:
        """What became of the newest command."""
        return SAYS.get(self.receipt.state, "") if self.receipt else ""


@dataclass
class SwitchPage:
    """Everything on it."""

    model: WatchedModel
    environment: str
    environments: list[str]
    has_key: bool
    switch: Switch | None
    past: list[Switch]
    events: list[SwitchEvent]
    rows: list[InstanceRow]
    versions: list[str]
    refused: int
    symmetric: int = 0
    """How many would follow a command that another job signed."""
    changes: list[tuple[str, float | None, float | None]] = field(default_factory=list)


def switch_page(*, model: WatchedModel, environment: str) -> SwitchPage:
    """In eight queries at most."""
    live = Instance.objects.filter(model=model, last_seen_at__gte=clock.now() - LIVE).exclude(helping()).exclude(ended())
    live = live.select_related("version")
    found = list(live.order_by("environment", "version_id", "job", "rank", "instance_id"))
    environments = sorted({one.environment for one in found} | ({environment} if environment else set()))
    environment = environment or next(iter(environments), "")
    rows = [InstanceRow(one, verbs_allowed(one)) for one in found if one.environment == environment][:MOST]
    newest: dict[int, CommandReceipt] = {}
    for receipt in CommandReceipt.objects.filter(instance__in=[row.instance.pk for row in rows]).order_by("at", "pk"):
        newest[receipt.instance_id] = receipt
    for row in rows:
        row.receipt = newest.get(row.instance.pk)
    history = Switch.objects.filter(version__model=model, environment=environment).select_related("version").order_by("-asked_at")
    switches = list(history[: SHOWN + 1])
    now = next((one for one in switches if one.ended_at is None), None)
    shown = now or next(iter(switches), None)
    page = SwitchPage(
        model=model,
        environment=environment,
        environments=environments,
        has_key=bool(command_key(model.project)),
        switch=now,
        past=[one for one in switches if one.ended_at is not None][:SHOWN],
        events=list(shown.events.order_by("-at", "-pk")[:50]) if shown else [],
        rows=rows,
        versions=sorted({row.instance.version.name for row in rows if row.verbs}),
        refused=sum(receipt.refused for receipt in newest.values()),
        symmetric=sum(symmetric(row.instance) for row in rows),
    )
    if now is not None:
        page.changes = _changes(now, [row.instance.pk for row in rows if row.says == "in force"])
    return page


def _changes(switch: Switch, instances: list[int]) -> list[tuple[str, float | None, float | None]]:
    """p95, memory and failed calls: in the minutes before, and in the last ones on the instances where it is in force."""
    place: dict[str, Any] = {"version_id": switch.version_id, "environment": switch.environment}
    present = lately(project_id=switch.project_id, **place, instances=instances)
    return [(name, _shown(name, switch.before), _shown(name, present)) for name in ("p95", "memory", "errors", "calls")]


def _shown(name: str, measured: dict[str, Any]) -> float | None:
    if name == "errors":
        return measured["errors"] / measured["calls"] if measured.get("calls") else None
    return measured.get(name) or None
