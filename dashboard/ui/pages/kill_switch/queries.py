"""Data of the Kill switch page: requests, instances that applied them, and changes since
activation; and the notices on other pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dashboard.alerts.kill_switch.health_check import measure_recent
from dashboard.alerts.kill_switch.models import Switch, SwitchEvent
from dashboard.alerts.kill_switch.rollout import (
    MAX_REPORT_AGE,
    list_allowed_verbs,
    uses_symmetric_key,
)
from dashboard.common import clock
from dashboard.fleet.models import CommandReceipt, Instance, WatchedModel
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.instances.role_filters import where_ended, where_helping
from dashboard.projects.command_key import derive_command_key

MAX_SWITCHES_SHOWN, MAX_INSTANCES = 10, 200
RECEIPT_LABELS = {
    "ready": "ready",
    "accepted": "accepted",
    "applied": "active",
    "ended": "ended",
    "refused": "refused",
}


def list_live_kill_switches(
    *, project_id: int, model_id: int | None = None, environment: str = ""
) -> list[Switch]:
    """Active overrides of a project, a model or an environment, oldest first, in one query."""
    rows = Switch.objects.filter(project_id=project_id, ended_at=None)
    if model_id is not None:
        rows = rows.filter(version__model_id=model_id)
    if environment:
        rows = rows.filter(environment=environment)
    return list(rows.select_related("version__model").order_by("asked_at", "pk"))


@dataclass
class KillSwitchInstance:
    """One reporting process and its latest receipt."""

    instance: Instance
    verbs: list[str]
    receipt: CommandReceipt | None = None

    @property
    def name(self) -> str:
        """Display name of the process."""
        return process_name(self.instance)

    @property
    def says(self) -> str:
        """State of the latest command."""
        return RECEIPT_LABELS.get(self.receipt.state, "") if self.receipt else ""


@dataclass
class KillSwitchData:
    """Data of the page."""

    model: WatchedModel
    environment: str
    environments: list[str]
    has_key: bool
    switch: Switch | None
    past: list[Switch]
    events: list[SwitchEvent]
    rows: list[KillSwitchInstance]
    versions: list[str]
    refused: int
    symmetric: int = 0
    """Number of instances that would accept a command signed by another job."""
    changes: list[tuple[str, float | None, float | None]] = field(default_factory=list)


def read_kill_switch_data(*, model: WatchedModel, environment: str) -> KillSwitchData:
    """Reads the page in at most eight queries."""
    live = (
        Instance.objects.filter(model=model, last_seen_at__gte=clock.now() - MAX_REPORT_AGE)
        .exclude(where_helping())
        .exclude(where_ended())
    )
    live = live.select_related("version")
    found = list(live.order_by("environment", "version_id", "job", "rank", "instance_id"))
    environments = sorted(
        {one.environment for one in found} | ({environment} if environment else set())
    )
    environment = environment or next(iter(environments), "")
    rows = [
        KillSwitchInstance(one, list_allowed_verbs(one))
        for one in found
        if one.environment == environment
    ][:MAX_INSTANCES]
    newest: dict[int, CommandReceipt] = {}
    for receipt in CommandReceipt.objects.filter(
        instance__in=[row.instance.pk for row in rows]
    ).order_by("at", "pk"):
        newest[receipt.instance_id] = receipt
    for row in rows:
        row.receipt = newest.get(row.instance.pk)
    history = (
        Switch.objects.filter(version__model=model, environment=environment)
        .select_related("version")
        .order_by("-asked_at")
    )
    switches = list(history[: MAX_SWITCHES_SHOWN + 1])
    now = next((one for one in switches if one.ended_at is None), None)
    shown = now or next(iter(switches), None)
    page = KillSwitchData(
        model=model,
        environment=environment,
        environments=environments,
        has_key=bool(derive_command_key(model.project)),
        switch=now,
        past=[one for one in switches if one.ended_at is not None][:MAX_SWITCHES_SHOWN],
        events=list(shown.events.order_by("-at", "-pk")[:50]) if shown else [],
        rows=rows,
        versions=sorted({row.instance.version.name for row in rows if row.verbs}),
        refused=sum(receipt.refused for receipt in newest.values()),
        symmetric=sum(uses_symmetric_key(row.instance) for row in rows),
    )
    if now is not None:
        page.changes = _changes(now, [row.instance.pk for row in rows if row.says == "active"])
    return page


def _changes(switch: Switch, instances: list[int]) -> list[tuple[str, float | None, float | None]]:
    """p95, memory and failed calls: in the minutes before the override, and in the latest minutes
    of the instances with the active override."""
    place: dict[str, Any] = {"version_id": switch.version_id, "environment": switch.environment}
    present = measure_recent(project_id=switch.project_id, **place, instances=instances)
    return [
        (name, _get_measurement(name, switch.before), _get_measurement(name, present))
        for name in ("p95", "memory", "errors", "calls")
    ]


def _get_measurement(name: str, measured: dict[str, Any]) -> float | None:
    if name == "errors":
        return measured["errors"] / measured["calls"] if measured.get("calls") else None
    return measured.get(name) or None
