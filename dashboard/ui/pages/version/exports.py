"""JSON and CSV of a version: the numbers of its Compiles and Startup tabs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dashboard.ui.pages.compiles.cache_misses import MissesCard, misses_card
from dashboard.ui.pages.compiles.compiled_share import CompiledShare
from dashboard.ui.pages.compiles.golden_batches import parity_json
from dashboard.ui.pages.compiles.kernels import kernels_card, kernels_json
from dashboard.ui.pages.compiles.live_numerics import live_json
from dashboard.ui.pages.compiles.presenter import compiled_share_of, live_calls_of, parity_of
from dashboard.ui.pages.compiles.queries import CompilesData
from dashboard.ui.pages.compiles.recompile_headroom import list_frame_headroom
from dashboard.ui.pages.compiles.telemetry_gaps import list_telemetry_gaps
from dashboard.ui.pages.findings.columns import findings_columns
from dashboard.ui.pages.startup.payback import Payback
from dashboard.ui.pages.startup.presenter import forecast_rollout_of, payback_of
from dashboard.ui.pages.startup.start_times import StartsCard, start_json, starts_card
from dashboard.ui.pages.version.queries import VersionData
from dashboard.ui.pages.version.status import VersionStatus


@dataclass(frozen=True)
class VersionExport:
    """A version with its status; `replicas` and `at_once` are the inputs of the forecast."""

    status: VersionStatus
    data: CompilesData
    replicas: int | None = None
    at_once: int | None = None


def version_json(export: VersionExport) -> dict[str, Any]:
    """The numbers of a version as JSON; unknown values are null."""
    data, status = export.data.version, export.status
    starts = starts_of(data)
    misses = misses_card(data.own, data.processes, data.answers)
    rollout = forecast_rollout_of(data, replicas=export.replicas, at_once=export.at_once)
    gaps = list_telemetry_gaps(data.own)
    baseline = (data.baseline.id, data.baseline.name) if data.baseline else None
    columns = findings_columns(
        export.data.findings, judged=(data.version.pk, data.version.name), baseline=baseline
    )
    return {
        "model": data.model.name,
        "version": data.version.name,
        "environment": data.environment,
        "simulated": data.model.simulated,
        "verdict": asdict(status.said) if status.said else None,
        "baseline": data.baseline.name if data.baseline else None,
        "live": data.live,
        "served": _served_json(compiled_share_of(export.data)),
        "why_eager": export.data.why_eager.as_dict(),
        "cold_starts": start_json(starts),
        "forecast": [{**asdict(one), "estimate": True} for one in rollout.forecasts],
        "warm_cache_saves": {**asdict(rollout.warm_cache), "estimate": True},
        "compilations": {
            "known": len(data.events),
            "cut": data.events_cut,
            "in_requests": sum(event.in_request for event in data.events),
        },
        "cuda_graph_recordings": {
            "count": data.recordings.graphs,
            "seconds": data.recordings.seconds,
        },
        "headroom": _headroom_json(data),
        "known_of": {
            "processes": len(data.own),
            "starts": starts.count,
            "caches": misses.telling if data.answers else None,
            "signals": len(data.own) - gaps.untelling,
        },
        "misses": _misses_json(misses),
        "payback": _payback_json(payback_of(data)),
        "parity": parity_json(parity_of(export.data)),
        "live_calls": live_json(live_calls_of(export.data)),
        "kernels": kernels_json(kernels_card(data.own)),
        "findings": {column.key: column.total for column in columns},
        "blind": [asdict(one) for one in gaps.rows],
    }


def starts_of(data: VersionData, wanted: int | None = None) -> StartsCard:
    """The starts of a version."""
    return starts_card(data.own, data.theirs, budget=data.budgets.cold_start, wanted=wanted)


def _headroom_json(data: VersionData) -> list[dict[str, Any]]:
    return [
        {
            "frame": row.frame,
            "place": row.place,
            "entries": row.entries.count,
            "limit": row.entries.limit,
            "latched": row.latched,
        }
        for row in list_frame_headroom(data.events, data.own)
    ]


def _misses_json(misses: MissesCard) -> list[dict[str, Any]]:
    return [
        {
            "cause": row.newest.cause,
            "against": row.newest.against,
            "brought_by": row.newest.brought or None,
            "processes": row.processes,
            "compilations": row.compilations,
            "seconds": row.seconds,
            "gpu_seconds": row.gpu_seconds,
        }
        for row in misses.rows
    ]


def _served_json(one: CompiledShare) -> Mapping[str, Any]:
    return {
        **asdict(one),
        "share": one.share,
        "recent": one.recent,
        "used": one.used,
        "burn": one.burn,
    }


def _payback_json(one: Payback) -> Mapping[str, Any]:
    return {
        "unit": one.unit,
        "spent": one.spent,
        "saved": one.saved,
        "net": one.net,
        "break_even_calls": one.break_even,
        "reference_at": one.reference_at,
        "estimate": True,
    }


def start_table(starts: StartsCard) -> list[list[Any]]:
    """One row per stage of the drawn start, in seconds since process start."""
    name = starts.chosen.process.name if starts.chosen else ""
    rows = [
        [name, step.name, round(step.begin, 3), round(step.seconds, 3)] for step in starts.steps
    ]
    return [["instance", "phase", "begins at (s)", "took (s)"], *rows]


def version_table(data: VersionData) -> list[list[Any]]:
    """One row per compilation, including those that the timeline omits."""
    processes = {one.id: one for one in data.own}
    rows: list[list[Any]] = [
        [
            *(
                "time",
                "instance",
                "seconds after start",
                "frame",
                "place",
                "kind",
                "outcome",
                "seconds",
                "in a request",
                "missed",
            ),
            *("reason", "cache entries", "limit"),
        ]
    ]
    for event in data.events:
        process = processes.get(event.instance_id)
        after = round(event.at.timestamp() - process.started_at.timestamp(), 3) if process else None
        place = f"{event.file}:{event.line}" if event.file else ""
        waited = "yes" if event.in_request else "no"
        name = process.name if process else ""
        told = (
            event.frame,
            place,
            event.kind,
            event.outcome,
            event.total,
            waited,
            event.miss,
            event.reason_kind,
        )
        rows.append([event.at.isoformat(), name, after, *told, event.entries, event.entry_limit])
    return rows
