"""Instances page: one row per instance, with its state and its heat strip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dashboard.common import clock
from dashboard.fleet.fold.roles import is_counted
from dashboard.fleet.models import Instance, InstanceState
from dashboard.fleet.names import process_name
from dashboard.fleet.selectors.instances.instance_heatmap import Heatmap, HeatmapCell
from dashboard.fleet.selectors.instances.instance_states import (
    RULES,
    SEVERITY,
    eager_share,
    has_ended,
)
from dashboard.fleet.selectors.instances.instances import ReportingInstance
from dashboard.fleet.selectors.job_groups import Server
from dashboard.ui.charts.heatmap import HeatmapRow, Measure, Value, build_heatmap_row
from dashboard.ui.pages.instances.queries import BAD_STATES, InstancesData
from dashboard.ui.pages.instances.table import InstanceRow, format_helpers, instance_row
from dashboard.ui.pages.instances.trait_differences import TraitDifferences, compare_traits
from dashboard.vocabulary import numbers

GOOD_WORDS = "other instances"
NEWEST_MINUTES = 15
"""Minutes of p50 and compile time in the table."""


@dataclass(frozen=True)
class InstancesPageRow:
    """One instance with its strip; `said` is the text of the strip."""

    told: InstanceRow
    strip: HeatmapRow
    said: str
    job: str
    started: datetime
    eager: str
    p50: str
    compiling: str
    server: str = ""
    """The server that starts with this row, with its processes; empty if no server starts here."""
    helpers: str = ""
    """Helper processes of the job, in the first row of the job."""

    @property
    def calm(self) -> bool:
        """Whether the instance is healthy or ended normally, without losses; phones show a shorter
        row."""
        well = self.told.state == InstanceState.HEALTHY or (
            self.told.state == InstanceState.ENDED and not self.told.ended_badly
        )
        return well and not self.told.losses


@dataclass(frozen=True)
class InstancesPage:
    """All data of the template."""

    facts: InstancesData
    measure: Measure
    rows: list[InstancesPageRow]
    states: list[tuple[InstanceState, int]]
    rules: list[tuple[InstanceState, str]]
    differs: TraitDifferences
    versions: list[tuple[int, str]]
    gpus: list[str]
    jobs: int
    helpers: str


def instances_page(facts: InstancesData, measure: Measure) -> InstancesPage:
    """Builds the page."""
    counts = facts.states
    return InstancesPage(
        facts=facts,
        measure=measure,
        rows=_rows(facts, measure),
        helpers=format_helpers(Counter(one.role for one in facts.helpers)),
        states=[(state, counts[state]) for state in SEVERITY if counts[state]],
        rules=[(rule.state, rule.words) for rule in RULES],
        differs=compare_traits(
            facts.traits, facts.bad, facts.good, bad_words=_bad_words(counts), good_words=GOOD_WORDS
        ),
        versions=sorted(
            {(row.version_id, row.version.name) for row, _ in facts.everyone},
            key=lambda one: one[1],
        ),
        gpus=sorted({row.gpu for row, _ in facts.everyone if row.gpu}),
        jobs=len({row.job for row, _ in facts.everyone if row.job and row.world_size > 1}),
    )


def _bad_words(counts: Counter[InstanceState]) -> str:
    """The names of the bad states that occur; all bad states if none occurs."""
    named = [state.value for state in BAD_STATES if counts[state]] or [
        state.value for state in BAD_STATES
    ]
    return (
        f"{', '.join(named[:-1])} or {named[-1]} instances"
        if len(named) > 1
        else f"{named[0]} instances"
    )


def _rows(facts: InstancesData, measure: Measure) -> list[InstancesPageRow]:
    """The rows; the first row of each server and job has the data of the server or job."""
    groups, said = facts.groups, set[Server]()
    rows = []
    for instance, _ in facts.shown:
        row, group, server = (
            _row(instance, facts, measure),
            groups.group_of(instance),
            groups.server_of(instance),
        )
        if group not in said:
            said.add(group)
            helpers = format_helpers(groups.helpers_of(group))
            parts = ", ".join(
                part for part in (format_helpers(groups.roles_of(group)), helpers) if part
            )
            named = f"Server on {instance.host}" + (f", job {instance.job}" if instance.job else "")
            row = (
                replace(row, server=f"{named}: {parts}")
                if server
                else replace(row, helpers=helpers)
            )
        rows.append(row)
    return rows


def _row(instance: Instance, facts: InstancesData, measure: Measure) -> InstancesPageRow:
    told = instance_row(
        ReportingInstance(instance, facts.levels.missing.get(instance.instance_id, 0)),
        {},
        clock.now(),
    )
    strip = build_heatmap_row(list_slot_values(facts.levels, instance.pk, measure), measure)
    share, newest = eager_share(instance), _newest_cells(facts.levels, instance.pk)
    timed, covered = sum(one.timed for one in newest), sum(one.covered for one in newest)
    compiling = sum(one.compiling for one in newest)
    return InstancesPageRow(
        told=told,
        strip=strip,
        said=_said(strip, facts.levels, instance, measure),
        job=instance.job if instance.world_size > 1 else "",
        started=instance.started_at,
        eager=numbers.percent(share) if instance.known_calls else "",
        p50=numbers.duration(sum(one.level for one in newest) / timed) if timed else "",
        compiling=numbers.percent(min(1.0, compiling / covered)) if covered else "",
    )


def _newest_cells(levels: Heatmap, instance: int) -> list[HeatmapCell]:
    """The cells of the newest minutes of the strips."""
    slots = levels.slots
    first = slots.count - max(1, -(-NEWEST_MINUTES // slots.step))
    return [cell for slot, cell in levels.cells.get(instance, {}).items() if slot >= first]


def list_slot_values(levels: Heatmap, instance: int, measure: Measure) -> list[Value]:
    """The value of each slot; None without a report."""
    cells = levels.cells.get(instance, {})
    return [get_value(cells.get(slot), measure) for slot in range(levels.slots.count)]


def get_value(cell: HeatmapCell | None, measure: Measure) -> Value:
    """The value of the measure in one cell."""
    if cell is None:
        return None
    if measure.key == "eager":
        return cell.eager_share
    return cell.compiling_share if measure.key == "compiling" else cell.ratio


def format_value(value: Value, measure: Measure) -> str:
    """A value as text."""
    if value is None:
        return "no report"
    return numbers.change(value - 1) if measure.key == "p50" else numbers.percent(value)


def _said(strip: HeatmapRow, levels: Heatmap, instance: Instance, measure: Measure) -> str:
    if strip.worst is None:
        return (
            "no report in this range"
            if not levels.cells.get(instance.pk)
            else "metric not reported in this range"
        )
    values = list_slot_values(levels, instance.pk, measure)
    worst = f"highest {format_value(values[strip.worst], measure)}"
    # A process that started within a slot has no values before its start.
    at = max(
        clock.at_minute(levels.slots.span.first + strip.worst * levels.slots.step),
        instance.started_at,
    )
    since = (
        clock.minute_of(instance.started_at.timestamp()) - levels.slots.span.first
    ) // levels.slots.step
    missing = sum(
        value is None for value in values[max(0, since) :]
    )  # no reports are expected before the start
    gaps = f"; {numbers.plural(missing, 'gap')}" if missing else ""
    return f"{worst} at {clock.format_timestamp(at)}{gaps}"


def serialize_rows(page: InstancesPage) -> list[dict[str, Any]]:
    """The rows of the page as data, with every cell of their strips."""
    levels = page.facts.levels
    starts = [
        levels.slots.span.first + slot * levels.slots.step for slot in range(levels.slots.count)
    ]
    return [
        _told(instance, state, page.facts.levels.missing, page.measure, levels, starts)
        for instance, state in page.facts.shown
    ]


def serialize_ending(instance: Instance) -> dict[str, Any]:
    """Time and kind of the end as data; empty if the instance reported later."""
    ended = has_ended(instance)
    return {
        "ended_at": instance.ended_at.isoformat() if instance.ended_at and ended else None,
        "exit_code": instance.exit_code if ended else None,
        "exit_signal": instance.exit_signal if ended else "",
    }


def _told(
    instance: Instance,
    state: InstanceState,
    missing: Mapping[str, int],
    measure: Measure,
    levels: Heatmap,
    starts: list[int],
) -> dict[str, Any]:
    return {
        "id": instance.instance_id,
        "name": process_name(instance),
        "label": instance.label,
        "role": instance.role,
        "pid": instance.pid,
        "host": instance.host,
        "node": instance.node,
        "rank": instance.rank,
        "job": instance.job,
        "version": instance.version.name,
        "gpu": instance.gpu,
        "state": state.value,
        "counted": is_counted(instance),
        **serialize_ending(instance),
        "started_at": instance.started_at.isoformat(),
        "last_seen_at": instance.last_seen_at.isoformat(),
        "clock_offset": instance.clock_offset,
        "late_windows": instance.late_windows,
        "missing_windows": missing.get(instance.instance_id, 0),
        "eager_share": eager_share(instance) if instance.known_calls else None,
        measure.key: dict(
            zip(map(str, starts), list_slot_values(levels, instance.pk, measure), strict=True)
        ),
    }
