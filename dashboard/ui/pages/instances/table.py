"""Recently reporting instances of a model: state, clock skew, late reports and losses, most serious
first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from dashboard.fleet.models import Instance, InstanceState
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.instances.instance_states import (
    CLOCK_SKEW_SHOWN_S,
    describe_end,
    eager_share,
    has_failed,
    instance_state,
    list_missing_capabilities,
)
from dashboard.fleet.selectors.instances.instances import ReportingInstance
from dashboard.vocabulary import numbers

SHOWN = 40
HELPERS = {"auxiliary": ("auxiliary process", "auxiliary processes")}
"""Roles with an irregular plural."""
LOSSES = (
    ("merged_windows", "report merged", "reports merged"),
    ("truncated_events", "event without its sample", "events without their samples"),
    ("spool_errors", "spool error", "spool errors"),
    ("internal_errors", "agent error", "agent errors"),
    ("rejected_windows", "report rejected", "reports rejected"),
)


@dataclass(frozen=True)
class InstanceRow:
    """One instance as texts; empty texts are not shown."""

    name: str
    slot: int
    version: str
    gpu: str
    state: InstanceState
    why: str
    seen: datetime
    clock: str
    late: str
    losses: str
    instance_id: str
    state_words: str
    """The state, with the kind of the end if the instance ended."""
    ended_badly: bool
    place: str
    """Host and process id, if the name does not contain them, and the node if it differs."""


def instance_row(one: ReportingInstance, slots: Mapping[int, int], now: datetime) -> InstanceRow:
    """One instance as texts."""
    instance = one.instance
    state = instance_state(instance, now)
    return InstanceRow(
        name=process_name(instance),
        slot=slots.get(instance.version_id, 0),
        version=instance.version.name,
        gpu=instance.gpu or "no GPU",
        state=state,
        why=explain_state(state, instance),
        seen=instance.last_seen_at,
        clock=format_clock_offset(instance.clock_offset),
        late=numbers.plural(instance.late_windows, "window") if instance.late_windows else "",
        losses=", ".join(list_losses(instance, one.missing)),
        instance_id=instance.instance_id,
        state_words=describe_end(instance) if state == InstanceState.ENDED else state.value,
        ended_badly=has_failed(instance),
        place=format_place(instance),
    )


def format_place(instance: Instance) -> str:
    """Host and process id of an instance with a label as its name, and the node if it differs from
    the host."""
    parts = []
    if instance.label and instance.host:
        parts = [instance.host, f"pid {instance.pid}" if instance.pid else ""]
    if instance.node != instance.host:
        parts.append(f"node {instance.node}" if instance.node else "")
    return ", ".join(part for part in parts if part)


def format_helpers(roles: Mapping[str, int]) -> str:
    """Helper processes of a job, such as "4 data workers, 1 parent"; empty if there are none."""
    return ", ".join(
        numbers.plural(roles[role], *HELPERS.get(role, (role,)))
        for role in sorted(roles, key=lambda role: (-roles[role], role))
    )


def is_reporting(instance: Instance, now: datetime) -> bool:
    """Whether the instance reports now."""
    return instance_state(instance, now) not in (InstanceState.SILENT, InstanceState.ENDED)


def explain_state(state: InstanceState, instance: Instance) -> str:
    """The reason for the state, if the reports contain it."""
    if state in (InstanceState.HUNG, InstanceState.COMPILING):
        frame = f"{instance.compiling_frame} for " if instance.compiling_frame else "for "
        return frame + numbers.duration(instance.compiling_for)
    if state == InstanceState.BLIND:
        missing = [name.replace("_", " ") for name in list_missing_capabilities(instance)]
        return f"no {' and '.join(missing)}"
    if state in (InstanceState.EAGER, InstanceState.DEGRADED):
        frames = sorted(
            {
                str(frame.get("frame"))
                for frame in instance.latched_eager
                if isinstance(frame, dict) and frame.get("frame")
            }
        )
        share = (
            f"{numbers.percent(eager_share(instance))} of calls" if eager_share(instance) else ""
        )
        return "; ".join(part for part in (share, ", ".join(frames)) if part)
    return ""


def format_clock_offset(offset: float) -> str:
    """Clock skew as text; `offset` is server minus agent, so a positive offset means behind."""
    if abs(offset) <= CLOCK_SKEW_SHOWN_S:
        return ""
    return f"{numbers.duration(abs(offset))} {'behind' if offset > 0 else 'ahead'}"


def list_losses(instance: Instance, missing: int) -> Iterable[str]:
    """One phrase per kind of loss."""
    if missing:
        yield numbers.plural(missing, "report missing", "reports missing")
    for name, one, many in LOSSES:
        if count := getattr(instance, name):
            yield numbers.plural(count, one, many)
