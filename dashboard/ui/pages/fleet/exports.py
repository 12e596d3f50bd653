"""Serialization of Fleet rows: numbers in base units with the unit in the field name, times in ISO
8601, None for unreported values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dashboard.common import clock
from dashboard.fleet.selectors.versions.data_age import stale_minutes
from dashboard.fleet.selectors.versions.fleet_calls import RECENT_MINUTES
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange
from dashboard.regressions.models import Verdict
from dashboard.ui.pages.compare.exports import serialize_change
from dashboard.ui.pages.fleet.cells import Cell
from dashboard.ui.pages.fleet.rows import FleetRow

LATENCIES = ("p50", "p99")
VALUES = (
    *(
        "p50_seconds",
        "p50_below_seconds",
        "p50_baseline_seconds",
        "p99_seconds",
        "p99_below_seconds",
        "p99_baseline_seconds",
    ),
    *(
        "mean_seconds",
        "compiled_share",
        "compiled_baseline_share",
        "cache_hit_share",
        "cache_hit_baseline_share",
    ),
    *(
        "cold_start_seconds",
        "cold_start_baseline_seconds",
        "cold_start_budget_seconds",
        "memory_peak_bytes",
        "memory_peak_baseline_bytes",
    ),
)
JUDGED = (
    "baseline_seconds",
    "candidate_seconds",
    "change_ratio",
    "change_low_ratio",
    "change_high_ratio",
    "window_minutes",
)
COLUMNS = (
    *(
        "model",
        "verdict",
        "sentence",
        "environments",
        "versions",
        "version_call_shares",
        "region",
        *VALUES,
    ),
    *(f"{name}_judged_{field}" for name in LATENCIES for field in JUDGED),
    *("instances", "alerts", "last_known_at", "stale_minutes", "gpus", "since"),
)


def serialize_windows(window: BinnedRange) -> dict[str, dict[str, str]]:
    """Time spans of the values, the end exclusive: `latency` for latencies, `range` for shares and
    memory."""
    ends = {
        "latency": (window.end - RECENT_MINUTES + 1, window.end + 1),
        "range": (window.start, window.end + 1),
    }
    return {name: {"first": _at(first), "last": _at(last)} for name, (first, last) in ends.items()}


def serialize_fleet_row(row: FleetRow) -> dict[str, Any]:
    """One model. `changes` come from the stored verdict: each has both values, the unit and the
    window in minutes."""
    return {
        "model": row.state.model.name,
        "verdict": row.state.kind,
        "sentence": row.state.sentence,
        "environments": row.state.environments,
        "versions": [{"name": one.name, "call_share": one.share} for one in row.versions],
        "region": row.region or None,
        **_values(row),
        "changes": [serialize_change(one.frozen) for one in row.evidence],
        "judged_until": _at(row.state.verdict.minute + 1) if row.state.verdict else None,
        "instances": {group.state.value: group.count for group in row.state.instances},
        "alerts": [alert.number for alert in row.state.alerts],
        **_ages(row.state.verdict),
        "gpus": row.state.gpus,
        "since": row.state.since.isoformat() if row.state.since else None,
    }


def fleet_cells(row: FleetRow) -> list[Any]:
    """The row as table cells: lists are joined, and only the changes of p50 and p99 are
    included."""
    told = serialize_fleet_row(row)
    shares = ["" if one.share is None else str(float(f"{one.share:.6g}")) for one in row.versions]
    cells = [
        told["model"],
        told["verdict"],
        told["sentence"],
        _joined(told["environments"]),
        _joined(one.name for one in row.versions),
    ]
    cells += [_joined(shares), told["region"], *(told[name] for name in VALUES)]
    for cell in (row.p50, row.p99):
        one = cell.judged
        cells += (
            [one.baseline, one.candidate, one.change, one.low, one.high, one.minutes]
            if one
            else [None] * len(JUDGED)
        )
    instances = (f"{count} {state}" for state, count in told["instances"].items())
    return [
        *cells,
        _joined(instances),
        _joined(map(str, told["alerts"])),
        told["last_known_at"],
        told["stale_minutes"],
        _joined(told["gpus"]),
        told["since"],
    ]


def _values(row: FleetRow) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name, cell in (("p50", row.p50), ("p99", row.p99)):
        found |= {
            f"{name}_seconds": cell.value,
            f"{name}_below_seconds": _bound(cell),
            f"{name}_baseline_seconds": cell.base,
        }
    known = row.p50.known or row.p99.known
    shares = {"compiled": row.compiled, "cache_hit": row.cache}
    found["mean_seconds"] = known.mean if known else None
    for name, cell in shares.items():
        found |= {f"{name}_share": cell.value, f"{name}_baseline_share": cell.base}
    cold = row.cold
    found |= {
        "cold_start_seconds": cold.value if cold else None,
        "cold_start_baseline_seconds": cold.base if cold else None,
        "cold_start_budget_seconds": row.cold_budget,
        "memory_peak_bytes": row.peak.value,
        "memory_peak_baseline_bytes": row.peak.base,
    }
    return found


def _ages(verdict: Verdict | None) -> dict[str, str | int | None]:
    """Time when a verdict kept by an open alert was last confirmed, and age of its data if the data
    is stale; None otherwise."""
    outlived = verdict.outlived if verdict else None
    return {
        "last_known_at": outlived.known_at.isoformat() if outlived else None,
        "stale_minutes": stale_minutes(verdict.deployment) if verdict else None,
    }


def _bound(cell: Cell) -> float | None:
    return cell.known.bound if cell.known else None


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(parts)


def _at(minute: int) -> str:
    return clock.at_minute(minute).isoformat()
