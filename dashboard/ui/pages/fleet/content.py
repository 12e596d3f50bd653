"""Content of the Fleet page: states of all models, and values of those that are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.http import QueryDict

from dashboard.alerts.models import Alert, AlertCause
from dashboard.common import clock
from dashboard.fleet.selectors.instances.instance_states import instance_state
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange, FleetData
from dashboard.fleet.selectors.versions.fleet_page import (
    add_recent_latencies,
    add_version_values,
    read_fleet_frame,
)
from dashboard.ui.http.access import ProjectRequest
from dashboard.ui.http.sortable_table import Order
from dashboard.ui.http.time_range import build_window, read_range_preset
from dashboard.ui.pages.fleet.cells import find_judged
from dashboard.ui.pages.fleet.evidence import (
    NO_EVIDENCE,
    EvidenceSummary,
    read_evidence,
    summarize_evidence,
)
from dashboard.ui.pages.fleet.filters import FilterTerm, apply_filter, parse_filter
from dashboard.ui.pages.fleet.order import DEFAULT, columns, needs_values, sort_states, split_groups
from dashboard.ui.pages.fleet.queries import (
    FleetVerdicts,
    list_open_alerts,
    query_evidence,
    read_fleet_verdicts,
)
from dashboard.ui.pages.fleet.rows import FleetRow, ModelValues, build_row, find_values
from dashboard.ui.pages.fleet.states import ModelState, States, build_states


@dataclass
class FleetContent:
    """The fleet as the address asks for it: `groups` contain the models that match all filters, in
    order; `values` those that were read so far, by model."""

    project_id: int
    window: BinnedRange
    environment: str
    order: Order
    group: str
    terms: list[FilterTerm]
    facts: FleetData
    said: FleetVerdicts
    alerts: list[Alert]
    instance_states: States
    states: list[ModelState]
    counts: Counter[str]
    """Number of models by verdict, before the filter of verdicts."""
    groups: dict[str, list[ModelState]]
    values: dict[int, ModelValues]
    all_latencies: bool
    """Whether latencies of the last minutes are read for all models, or only for those whose p50 or
    p99 no verdict has compared."""

    @property
    def matching(self) -> list[ModelState]:
        """All models that match, in the order of the page."""
        return [one for members in self.groups.values() for one in members]


def read_content(request: ProjectRequest, *, all_latencies: bool = False) -> FleetContent:
    """Reads states, applies filters and order. An order by values reads those of every model that
    matches."""
    query, now = request.GET, clock.now()
    chosen = read_range_preset(query)
    window, environment = build_window(chosen), query.get("env", "")
    facts = read_fleet_frame(project=request.project, window=window, environment=environment)
    said, alerts = _read_verdicts_and_alerts(request, facts, window, environment)
    instance_states = {one.pk: instance_state(one, now) for one in facts.instances}
    states = build_states(
        facts=facts,
        said=said,
        alerts=[one for one in alerts if one.cause != AlertCause.FLEET_SILENCE],
        states=instance_states,
        everywhere=not environment,
    )
    terms = parse_filter(query.get("q", ""))
    found = apply_filter(terms, states)
    content = FleetContent(
        project_id=request.project.pk,
        window=window,
        environment=environment,
        order=Order.read(query, columns(chosen.label), DEFAULT),
        group=query.get("group", ""),
        terms=terms,
        facts=facts,
        said=said,
        alerts=alerts,
        instance_states=instance_states,
        states=states,
        counts=Counter(one.kind for one in found),
        groups={},
        values={},
        all_latencies=all_latencies,
    )
    _arrange(content, _filter_kind(query, found))
    return content


def _read_verdicts_and_alerts(
    request: ProjectRequest, facts: FleetData, window: BinnedRange, environment: str
) -> tuple[FleetVerdicts, list[Alert]]:
    """Alerts cost a query only if the project has an open one."""
    any_alert = bool(request.membership.open_alerts)
    said = read_fleet_verdicts(
        project_id=request.project.pk,
        start_minute=window.start,
        deployments=facts.deployments,
        environment=environment,
        alerts=any_alert,
    )
    return said, list_open_alerts(project_id=request.project.pk) if any_alert else []


def _filter_kind(query: QueryDict, states: Iterable[ModelState]) -> list[ModelState]:
    return [one for one in states if one.kind == query.get("verdict", one.kind)]


def _arrange(content: FleetContent, states: list[ModelState]) -> None:
    if needs_values(content.order):
        _read_values(content, states)
    ordered = sort_states(content.order, states, content.values)
    content.groups = split_groups(content.group, ordered)


def read_rows(content: FleetContent, states: Sequence[ModelState]) -> list[FleetRow]:
    """The rows of these models. Reads the values that are not known yet."""
    _read_values(content, states)
    versions = content.facts.versions
    return [build_row(content.values[one.model.pk], versions) for one in states]


def _read_values(content: FleetContent, states: Sequence[ModelState]) -> None:
    lacking = [one for one in states if one.model.pk not in content.values]
    if lacking:
        ids = {run.version_id for one in lacking for run in one.deployments}
        verdicts = {one.verdict.pk: one.verdict for one in lacking if one.verdict}
        kept = {pk: one for pk, one in verdicts.items() if "evidence" not in one.__dict__}
        told = add_version_values(
            content.facts,
            project_id=content.project_id,
            window=content.window,
            environment=content.environment,
            version_ids=ids,
            also=query_evidence(kept),
        )
        known = {pk: read_evidence(text) for pk, text in told}
        known |= {
            pk: summarize_evidence(one.evidence) for pk, one in verdicts.items() if pk not in kept
        }
        read = {
            one.model.pk: known.get(one.verdict.pk, NO_EVIDENCE) if one.verdict else NO_EVIDENCE
            for one in lacking
        }
        add_recent_latencies(
            content.facts,
            project_id=content.project_id,
            window=content.window,
            environment=content.environment,
            version_ids=ids if content.all_latencies else _find_uncompared(content, lacking, read),
        )
        for one in lacking:
            pk = one.model.pk
            content.values[pk] = find_values(one, content.facts.versions, read[pk])


def _find_uncompared(
    content: FleetContent, states: Sequence[ModelState], read: dict[int, EvidenceSummary]
) -> set[int]:
    """The versions of rows whose p50 or p99 no verdict has compared."""
    found: set[int] = set()
    for one in states:
        runs = [run for run in (one.focus, one.before) if run is not None]
        region = content.facts.versions[runs[0].version_id].region if runs else ""
        rows = read[one.model.pk].rows(one.kind)
        if not all(find_judged(rows, quantile, region) for quantile in (0.5, 0.99)):
            found |= {run.version_id for run in runs}
    return found
