"""Process fold: compilations, caches and memory of a process in one window."""

from __future__ import annotations

from collections.abc import Collection

from compilewatch.wire.messages import Compile, Fact, Gauges, Report

from dashboard.fleet.fold.counters import ProcessCounts
from dashboard.fleet.fold.report_window import Window
from dashboard.ingest.numbering import count_windows

MAX_BYTES = 1 << 62
MAX_FINDING_COUNT = 10**9
MAX_SECONDS = 10.0**9
MAX_COMPILE_S = 7 * 86400.0
"""Limit of a compilation's seconds. A longer value would dominate the total of the fleet."""
MAX_FRAMES = 10**6

FAILED_OUTCOMES = ("raised", "suppressed")
SUCCESS_OUTCOME, RECORDING = "ok", "cuda_graph"


def fold_process(report: Report, window: Window) -> ProcessCounts:
    """Return the process counts of one window."""
    process = ProcessCounts(windows=count_windows(report), covered=window.seconds)
    for compile_ in report.compiles:
        _compile_count(process, compile_)
    for finding in report.findings:
        count = min(max(finding.count, 0), MAX_FINDING_COUNT)
        if finding.kind == "graph_break":
            process.graph_breaks += count
        elif finding.kind == "fallback":
            process.fallbacks += count
        elif finding.kind == "cudagraph_skip":
            process.cudagraph_skips += count
    process.ooms = sum(count_ooms(fact) for fact in report.facts if fact.kind == "oom")
    _read_gauges(process, report.gauges)
    return process


def count_ooms(fact: Fact) -> int:
    """Return the number of out-of-memory errors of a fact; 1 if the agent reports no number."""
    count = fact.data.get("count", 1)
    return (
        min(max(count, 1), MAX_FINDING_COUNT)
        if isinstance(count, int) and not isinstance(count, bool)
        else 1
    )


def classify_compile(compile_: Compile) -> str:
    """Return the kind of a compilation.

    Older agents report a CUDA graph recording as autotuning; the seconds distinguish the two.
    """
    graphs, tuned = (compile_.seconds.get(phase, 0.0) for phase in ("cuda_graphs", "autotune"))
    return (
        RECORDING
        if compile_.kind == "autotune" and graphs > 0 and graphs >= tuned
        else compile_.kind
    )


def cache_answer(kind: str, outcome: str, answers: Collection[str]) -> str:
    """Return the combined answer of the graph caches: one miss makes a miss.

    Empty if no cache was asked, and for operations that cannot miss. A CUDA graph recording cannot
    miss, nor can a failed compilation: its result cannot be in a cache.
    """
    if kind == RECORDING or outcome != SUCCESS_OUTCOME:
        return ""
    return next((answer for answer in ("miss", "hit", "bypass") if answer in answers), "")


def clamp_seconds(value: float | None) -> float:
    """Clamp seconds to a plausible range; None becomes 0."""
    return min(max(value or 0.0, 0.0), MAX_SECONDS)


def clamp_compile_seconds(value: float | None) -> float | None:
    """Return the seconds a compilation took or saved; None if not reported or implausible."""
    return None if value is None or value > MAX_COMPILE_S else clamp_seconds(value)


def _compile_count(process: ProcessCounts, compile_: Compile) -> None:
    total = clamp_compile_seconds(compile_.seconds.get("total")) or 0.0
    kind = classify_compile(compile_)
    if kind == RECORDING:
        process.recordings += 1
        process.recording_seconds += total
        return
    process.compiles += 1
    process.recompiles += compile_.kind == "recompile"
    process.compile_failures += compile_.outcome in FAILED_OUTCOMES
    process.request_compiles += compile_.in_request
    process.compile_seconds += total
    process.saved_seconds += clamp_compile_seconds(compile_.saved) or 0.0
    answer = cache_answer(
        kind, compile_.outcome, [compile_.cache.get(name, "") for name in ("fx", "aot", "jax")]
    )
    if answer == "hit":
        process.cache_hits += 1
        process.hit_seconds += total
    elif answer == "miss":
        process.cache_misses += 1
        process.miss_seconds += total
    elif answer == "bypass":
        process.cache_bypasses += 1


def _read_gauges(process: ProcessCounts, gauges: Gauges) -> None:
    """Read the gauges. Of several devices, the largest value counts, because that device runs out
    of memory first."""
    devices = gauges.devices
    process.gpu_allocated = _find_largest_bytes([device.allocated for device in devices])
    process.gpu_peak = _find_largest_bytes([device.peak for device in devices])
    process.gpu_reserved = _find_largest_bytes([device.reserved for device in devices])
    process.gpu_graph_pool = _find_largest_bytes([device.graph_pool for device in devices])
    process.gpu_utilisation = max(
        [device.utilisation for device in devices if device.utilisation is not None], default=None
    )
    process.host_rss = _find_largest_bytes([gauges.host_rss])
    process.workers_rss = _find_largest_bytes([gauges.workers_rss])
    if gauges.host_rss_slope is not None:
        process.host_rss_slope = min(
            max(gauges.host_rss_slope, -float(MAX_BYTES)), float(MAX_BYTES)
        )
    if gauges.degraded_frames is not None:
        process.degraded_frames = min(max(gauges.degraded_frames, 0), MAX_FRAMES)
    if gauges.compiling_for is not None:
        process.compiling_for = clamp_seconds(gauges.compiling_for)


def _find_largest_bytes(values: list[int | None]) -> int | None:
    """Return the largest value in bytes, clamped to a plausible range; None without values."""
    seen = [value for value in values if value is not None]
    return min(max(*seen, 0), MAX_BYTES) if seen else None
