"""Kill-switch rollout: selects the instances of each stage and reads their receipts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from compilewatch.wire.command import cohort

from dashboard.alerts.kill_switch.models import Switch
from dashboard.common import clock
from dashboard.fleet.models import CommandReceipt, Instance
from dashboard.fleet.selectors.instances.role_filters import where_ended, where_helping

MAX_REPORT_AGE = timedelta(minutes=3)
"""Maximum age of the last report; the rollout does not wait for instances with an older one."""
STAGE_SHARES = (0.05, 0.25)
"""Stages between the first unit and all units."""


@dataclass(frozen=True)
class RolloutUnit:
    """Instances that switch together: one instance, or all ranks of a job."""

    name: str
    instances: tuple[Instance, ...]

    @property
    def is_complete(self) -> bool:
        """True if every rank reports."""
        return (
            len(self.instances) >= max((one.world_size for one in self.instances), default=1)
            or not self.instances[0].job
        )

    def allows(self, verb: str) -> bool:
        """True if all instances of the unit allow this verb."""
        return self.is_complete and all(verb in list_allowed_verbs(one) for one in self.instances)


def list_allowed_verbs(instance: Instance) -> list[str]:
    """The verbs that the instance's settings allow."""
    known = instance.capabilities.get("switch") if isinstance(instance.capabilities, dict) else None
    if (
        not isinstance(known, list)
        or len(known) != 2
        or known[0] != "yes"
        or not isinstance(known[1], str)
    ):
        return []
    return known[1].split(", ")


def uses_symmetric_key(instance: Instance) -> bool:
    """True if the instance verifies commands with the project's symmetric key, like all agents that
    do not report a verification method."""
    known = (
        instance.capabilities.get("command_signatures")
        if isinstance(instance.capabilities, dict)
        else None
    )
    return bool(list_allowed_verbs(instance)) and not (
        isinstance(known, list) and known[:1] == ["yes"]
    )


def list_live_units(*, version_id: int, environment: str) -> list[RolloutUnit]:
    """Units that report now and have not ended, by name. Helper processes of a job are left out."""
    rows = Instance.objects.filter(
        version_id=version_id,
        environment=environment,
        last_seen_at__gte=clock.now() - MAX_REPORT_AGE,
    )
    rows = rows.exclude(where_helping()).exclude(where_ended())
    found: dict[str, list[Instance]] = {}
    for row in rows.order_by("rank", "instance_id"):
        found.setdefault(row.job or row.instance_id, []).append(row)
    return [RolloutUnit(name, tuple(members)) for name, members in sorted(found.items())]


def compute_stage_shares(ident: str, units: Iterable[RolloutUnit]) -> list[float]:
    """The share of each stage: one unit, 5%, 25%, all. A stage that adds no unit is left out."""
    places = sorted(cohort(ident, unit.name) for unit in units)
    count = len(places)
    sizes = sorted({1, *(round(count * share) for share in STAGE_SHARES)} & set(range(1, count)))
    return [*((places[size - 1] + places[size]) / 2 for size in sizes), 1.0]


def select_units(ident: str, units: Iterable[RolloutUnit], share: float) -> list[RolloutUnit]:
    """The units that a command with this share is for."""
    return [unit for unit in units if cohort(ident, unit.name) < share]


@dataclass
class SwitchReceipts:
    """Receipts of one kill switch, by instance ID, in the order of the receipts' times."""

    ready: set[str]
    applied: set[str]
    refused: dict[str, str]

    @classmethod
    def of(cls, switch: Switch) -> SwitchReceipts:
        """Reads the receipts; the newest receipt of each instance counts. `ready` and `refused`
        count only for the newest command."""
        rows = CommandReceipt.objects.filter(
            project_id=switch.project_id, command__startswith=f"{switch.ident}."
        )
        told = cls(set(), set(), {})
        for name, state, command, why in rows.order_by("at", "pk").values_list(
            "instance__instance_id", "state", "command", "why"
        ):
            if state == "applied":
                told.applied.add(name)
            elif state == "ended":
                told.applied.discard(name)
            elif state == "ready" and command == switch.command:
                told.ready.add(name)
            elif state == "refused" and command == switch.command:
                told.refused[name] = why
        return told
