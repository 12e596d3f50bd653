"""Order and groups of the Fleet table, from its address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.ui.http.sortable_table import Column, Order
from dashboard.ui.pages.fleet.rows import ModelValues
from dashboard.ui.pages.fleet.states import UNKNOWN_GPU, ModelState
from dashboard.vocabulary import numbers
from dashboard.vocabulary.severity import VERDICTS_BY_URGENCY

DEFAULT = "-status"
PAGE_SIZE = 100
NO_ENVIRONMENT = "no version live"
GROUPS: dict[str, tuple[str, Callable[[ModelState], str]]] = {
    "environment": (
        "environment",
        lambda one: ", ".join(one.environments) or NO_ENVIRONMENT,
    ),
    "gpu": ("GPU", lambda one: one.gpu or UNKNOWN_GPU),
}
"""By the value in the address: the noun, and the group of a model."""

_STATE_KEYS: dict[str, Callable[[ModelState], Any]] = {
    "status": lambda one: (-one.urgency, len(one.alerts)),
    "model": lambda one: one.model.name.casefold(),
    "version": lambda one: one.focus.version.name.casefold() if one.focus else None,
    "instances": lambda one: one.instance_count,
    "alert": lambda one: len(one.alerts),
    "since": lambda one: one.since,
}
_VALUE_KEYS: dict[str, Callable[[ModelValues], Any]] = {
    "p50": lambda one: one.measure_change(0.5),
    "p99": lambda one: one.measure_change(0.99),
    "compiled": lambda one: one.newest.compiled_share,
    "cold": lambda one: one.newest.cold_start,
}


@dataclass(frozen=True)
class RowGroup:
    """A group: its name and its members in order. `shown` are the members on the page."""

    name: str
    members: Sequence[ModelState]
    shown: Sequence[ModelState]

    @property
    def counts(self) -> str:
        """The text "8 models, 122 instances"."""
        instances = sum(one.instance_count for one in self.members)
        return ", ".join(
            (
                numbers.plural(len(self.members), "model"),
                numbers.plural(instances, "instance"),
            )
        )

    @property
    def verdicts(self) -> list[tuple[str, int]]:
        """Number of models by verdict, most urgent first."""
        counts = Counter(one.kind for one in self.members)
        return [(kind, counts[kind]) for kind in VERDICTS_BY_URGENCY if counts[kind]]


def columns(range_label: str) -> list[Column]:
    """The columns; `unit` is the window of the values."""
    return [
        Column("Status", "status", "verdict", most_first=True),
        Column("Model", "model"),
        Column("Version", "version", "live_versions", unit="share of calls"),
        Column("p50", "p50", "fleet_latency", right=True, unit="matched", most_first=True),
        Column("p99", "p99", right=True, unit="matched", most_first=True),
        Column("Compiled", "compiled", "compiled", right=True, unit=f"last {range_label}"),
        Column("Cold start", "cold", "cold_start", True, "median now", most_first=True),
        Column("Instances", "instances", "instances", right=True, most_first=True),
        Column("Alert", "alert", most_first=True),
        Column("Since", "since", right=True, most_first=True),
    ]


def needs_values(order: Order) -> bool:
    """Whether the order needs the values of all models."""
    return order.key in _VALUE_KEYS


def sort_states(
    order: Order, states: Sequence[ModelState], values: dict[int, ModelValues]
) -> list[ModelState]:
    """The models in order; equal ones by name. `values` of models, if the order needs them."""
    named = sorted(states, key=lambda one: one.model.name.casefold())
    if not needs_values(order):
        return order.sort_rows(named, _STATE_KEYS)
    key = _VALUE_KEYS[order.key]
    return order.sort_rows(named, {order.key: lambda one: key(values[one.model.pk])})


def split_groups(group: str, states: Sequence[ModelState]) -> dict[str, list[ModelState]]:
    """The models by group, the group with the worst verdict first; one nameless group without a
    grouping."""
    found: dict[str, list[ModelState]] = {}
    for one in states:
        name = GROUPS[group][1](one) if group in GROUPS else ""
        found.setdefault(name, []).append(one)
    order = sorted(
        found, key=lambda name: (min(one.urgency for one in found[name]), name.casefold())
    )
    return {name: found[name] for name in order}


def cut_page(groups: dict[str, list[ModelState]], first: int, size: int) -> list[RowGroup]:
    """The groups of one page of rows."""
    found, begin = [], 0
    for name, members in groups.items():
        shown = members[max(first - begin, 0) : max(first + size - begin, 0)]
        if shown:
            found.append(RowGroup(name, members, shown))
        begin += len(members)
    return found
