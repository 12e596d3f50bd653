"""The instances of a model that reported of late: state, clock, what came late and what was lost, the most serious first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.fleet.models import Instance, InstanceState
from dashboard.fleet.selectors.instance_states import CLOCK_SHOWN_OVER, RULES, SEVERITY, blind_to, eager_share, instance_state
from dashboard.fleet.selectors.instances import Reporting
from dashboard.ui import words
from dashboard.ui.charts.roles import Drawn

SHOWN = 40
LOSSES = (
    ("merged_windows", "window merged", "windows merged"),
    ("truncated_events", "event without its sample", "events without their samples"),
    ("spool_errors", "error of the spool", "errors of the spool"),
    ("internal_errors", "error of the agent", "errors of the agent"),
    ("rejected_windows", "window refused", "windows refused"),
)


@dataclass(frozen=True)
class InstanceRow:
    """One instance in words; an empty text means there is nothing to say."""

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
    instance_id: str = ""


@dataclass(frozen=True)
class InstancesTable:
    """The rows that are shown, and how many instances are in each state."""

    rows: list[InstanceRow]
    counts: list[tuple[InstanceState, int]]
    total: int
    rules: list[tuple[InstanceState, str]]


def instances_table(reporting: Sequence[Reporting], drawn: Sequence[Drawn], now: datetime) -> InstancesTable:
    """Everything about them; `now` decides who is silent."""
    slots = {version.id: version.slot for version in drawn}
    rows = [instance_row(one, slots, now) for one in reporting]
    counts = Counter(row.state for row in rows)
    rows.sort(key=lambda row: (SEVERITY.index(row.state), not row.losses, not row.clock, row.name))
    rules = [(rule.state, rule.words) for rule in RULES]
    return InstancesTable(rows[:SHOWN], [(state, counts[state]) for state in SEVERITY if counts[state]], len(rows), rules)


def instance_row(one: Reporting, slots: Mapping[int, int], now: datetime) -> InstanceRow:
    """One instance in words."""
    instance = one.instance
    state = instance_state(instance, now)
    return InstanceRow(
        name=f"{instance.host} / {instance.rank}" if instance.host else instance.instance_id,
        slot=slots.get(instance.version_id, 0),
        version=instance.version.name,
        gpu=instance.gpu or "no GPU",
        state=state,
        why=state_said(state, instance),
        seen=instance.last_seen_at,
        clock=clock_said(instance.clock_offset),
        late=words.plural(instance.late_windows, "window") if instance.late_windows else "",
        losses=", ".join(losses_said(instance, one.missing)),
        instance_id=instance.instance_id,
    )


def state_said(state: InstanceState, instance: Instance) -> str:
    """Why it is in that state, as far as its reports tell."""
    if state in (InstanceState.HUNG, InstanceState.COMPILING):
        frame = f"{instance.compiling_frame} for " if instance.compiling_frame else "for "
        return frame + words.duration(instance.compiling_for)
    if state == InstanceState.BLIND:
        return f"no {' and '.join(name.replace('_', ' ') for name in blind_to(instance))}"
    if state in (InstanceState.EAGER, InstanceState.DEGRADED):
        frames = sorted({str(frame.get("frame")) for frame in instance.latched_eager if isinstance(frame, dict) and frame.get("frame")})
        share = f"{words.percent(eager_share(instance))} of calls" if eager_share(instance) else ""
        return "; ".join(part for part in (share, ", ".join(frames)) if part)
    return ""


def clock_said(offset: float) -> str:
    """Server minus agent: a clock that is behind has to be put forward."""
    if abs(offset) <= CLOCK_SHOWN_OVER:
        return ""
    return f"{words.duration(abs(offset))} {'behind' if offset > 0 else 'ahead'}"


def losses_said(instance: Instance, missing: int) -> Iterable[str]:
    """Everything that was lost of it, a phrase each."""
    if missing:
        yield words.plural(missing, "window missing", "windows missing")
    for name, one, many in LOSSES:
        if count := getattr(instance, name):
            yield words.plural(count, one, many)
