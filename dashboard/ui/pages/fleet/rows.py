"""Rows of the Fleet table: the state of a model with the values of its versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dashboard.fleet.budgets import resolve_budgets
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.versions.fleet_data import VersionData
from dashboard.ui.layout.change_rows import ChangeRow
from dashboard.ui.pages.fleet.cells import (
    Cell,
    ColdStartCell,
    build_quantile_cell,
    cold_cell,
    measure_change,
    peak_cell,
    share_cell,
)
from dashboard.ui.pages.fleet.evidence import EvidenceSummary
from dashboard.ui.pages.fleet.states import ModelState
from dashboard.vocabulary import numbers


@dataclass(frozen=True)
class LiveVersion:
    """A version with traffic and its share of calls; None without calls."""

    id: int
    name: str
    share: float | None

    @property
    def share_said(self) -> str:
        """The share as text."""
        return "no calls now" if self.share is None else numbers.percent(self.share)


@dataclass
class FleetRow:
    """One model of the table."""

    state: ModelState
    versions: list[LiveVersion]
    p50: Cell
    p99: Cell
    compiled: Cell
    cache: Cell
    cold: ColdStartCell | None
    peak: Cell
    evidence: list[ChangeRow] = field(default_factory=list)
    region: str = ""
    """The region of calls and latency."""
    one_region: bool = True
    """Whether the model has no other region."""
    cold_budget: float | None = None
    """The cold-start budget in force, even without a known start."""
    called: bool = False
    """Whether a version received calls in the range."""
    not_compared: list[tuple[str, str]] = field(default_factory=list)
    """Share and reason of calls that were not compared."""

    @property
    def split(self) -> bool:
        """Whether several versions are live."""
        return len(self.versions) > 1

    @property
    def old_name(self) -> str:
        """The baseline while several versions are live, shortened to its last part if the names
        begin equally."""
        before, focus = self.state.before, self.state.focus
        if not self.split or before is None or focus is None or before.ended_minute is not None:
            return ""
        old, new = before.version.name, focus.version.name
        start, _, last = old.rpartition(".")
        return f".{last}" if start and new.startswith(f"{start}.") else old

    @property
    def windows(self) -> str:
        """The windows of p50 and p99, in words."""
        return ", ".join(dict.fromkeys(filter(None, (self.p50.window, self.p99.window))))


@dataclass(frozen=True)
class ModelValues:
    """Values of the versions of a model, and the evidence of its verdict, without texts."""

    state: ModelState
    newest: VersionData
    older: VersionData | None
    evidence: EvidenceSummary

    @property
    def changes(self) -> list[ChangeRow]:
        """The evaluated changes of the verdict."""
        return self.evidence.rows(self.state.kind)

    def measure_change(self, quantile: float) -> float | None:
        """The change of p50 or p99 as a ratio, for the order of models."""
        return measure_change(self.newest, quantile, self.changes, self.older)


def find_values(
    state: ModelState, versions: Mapping[int, VersionData], evidence: EvidenceSummary
) -> ModelValues:
    """The values of the version of the row and of its baseline."""
    focus, before = state.focus, state.before
    newest = versions.get(focus.version_id) if focus else None
    older = versions.get(before.version_id) if before else None
    return ModelValues(state, newest or VersionData(), older, evidence)


def build_row(values: ModelValues, versions: Mapping[int, VersionData]) -> FleetRow:
    """One row with texts."""
    state, newest, older = values.state, values.newest, values.older
    changes = values.changes
    budget = resolve_budgets(state.model).cold_start
    return FleetRow(
        state=state,
        versions=_live_versions(state.live, state.focus, versions),
        p50=build_quantile_cell(newest, 0.5, changes, older),
        p99=build_quantile_cell(newest, 0.99, changes, older),
        compiled=share_cell(
            newest.compiled_share, older.compiled_share if older else None, changes, ("eager",)
        ),
        cache=share_cell(
            newest.cache_hit, older.cache_hit if older else None, changes, ("cache", "cache_misses")
        ),
        cold=cold_cell(newest.cold_start, older.cold_start if older else None, budget),
        peak=peak_cell(newest.peak, older.peak if older else None, changes),
        evidence=changes,
        region=newest.region,
        one_region=newest.one_region,
        cold_budget=budget,
        called=any(
            versions[one.version_id].calls
            for one in state.deployments
            if one.version_id in versions
        ),
        not_compared=values.evidence.not_compared,
    )


def _live_versions(
    live: Sequence[Deployment], focus: Deployment | None, versions: Mapping[int, VersionData]
) -> list[LiveVersion]:
    """Live versions, the version of the row first; shares refer to the calls of the last
    minutes."""
    named = {one.version_id: one.version.name for one in reversed(live)}
    order = sorted(named, key=lambda version: focus is None or version != focus.version_id)
    calls = {one: versions[one].recent_calls if one in versions else 0 for one in order}
    total = sum(calls.values())
    return [LiveVersion(one, named[one], calls[one] / total if total else None) for one in order]
