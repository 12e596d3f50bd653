"""What a report says of its process as a whole: compilations, caches, memory."""

from __future__ import annotations

from collections.abc import Collection

from compilewatch.wire.messages import Compile, Fact, Gauges, Report

from dashboard.fleet.fold.counters import Process
from dashboard.fleet.fold.report_window import Window
from dashboard.ingest.numbering import windows_of

MAX_BYTES = 1 << 62
MAX_FINDING_COUNT = 10**9
MAX_SECONDS = 10.0**9
LONGEST_COMPILATION = 7 * 86400.0
"""One report with a longer one would stand for all that its fleet compiled."""
MAX_FRAMES = 10**6

FAILED = ("raised", "suppressed")
SUCCEEDED, RECORDING = "ok", "cuda_graph"


def process_of(report: Report, window: Window) -> Process:
    """The process facts of one window."""
    process = Process(windows=windows_of(report), covered=window.seconds)
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
    process.ooms = sum(ooms_of(fact) for fact in report.facts if fact.kind == "oom")
    _gauges_note(process, report.gauges)
    return process


def ooms_of(fact: Fact) -> int:
    """How often the allocator ran out of memory, as the fact tells; an agent that tells no number met it once."""
    count = fact.data.get("count", 1)
    return min(max(count, 1), MAX_FINDING_COUNT) if isinstance(count, int) and not isinstance(count, bool) else 1


def kind_of(compile_: Compile) -> str:
    """Agents that know no recordings called each an autotune; its seconds say what it was."""
    graphs, tuned = (compile_.seconds.get(phase, 0.0) for phase in ("cuda_graphs", "autotune"))
    return RECORDING if compile_.kind == "autotune" and graphs > 0 and graphs >= tuned else compile_.kind


def cache_answer(kind: str, outcome: str, answers: Collection[str]) -> str:
    """What the caches of graphs together answered: one miss is enough for a miss. Empty when none was asked, and of what cannot miss: a
    recording of CUDA graphs, and a compilation that failed, for what it did not find was never to be had."""
    if kind == RECORDING or outcome != SUCCEEDED:
        return ""
    return next((answer for answer in ("miss", "hit", "bypass") if answer in answers), "")


def seconds_of(value: float | None) -> float:
    """Seconds that can be true; absent ones add nothing."""
    return min(max(value or 0.0, 0.0), MAX_SECONDS)


def compile_seconds(value: float | None) -> float | None:
    """How long a compilation took or was spared; None where that is not told, or cannot be true."""
    return None if value is None or value > LONGEST_COMPILATION else seconds_of(value)


def _compile_count(process: Process, compile_: Compile) -> None:
    total = compile_seconds(compile_.seconds.get("total")) or 0.0
    kind = kind_of(compile_)
    if kind == RECORDING:
        process.recordings += 1
        process.recording_seconds += total
        return
    process.compiles += 1
    process.recompiles += compile_.kind == "recompile"
    process.compile_failures += compile_.outcome in FAILED
    process.request_compiles += compile_.in_request
    process.compile_seconds += total
    process.saved_seconds += compile_seconds(compile_.saved) or 0.0
    answer = cache_answer(kind, compile_.outcome, [compile_.cache.get(name, "") for name in ("fx", "aot", "jax")])
    if answer == "hit":
        process.cache_hits += 1
        process.hit_seconds += total
    elif answer == "miss":
        process.cache_misses += 1
        process.miss_seconds += total
    elif answer == "bypass":
        process.cache_bypasses += 1


def _gauges_note(process: Process, gauges: Gauges) -> None:
    """Of several devices the one that holds most: that is the one that runs out."""
    devices = gauges.devices
    process.gpu_allocated = _bytes([device.allocated for device in devices])
    process.gpu_peak = _bytes([device.peak for device in devices])
    process.gpu_reserved = _bytes([device.reserved for device in devices])
    process.gpu_graph_pool = _bytes([device.graph_pool for device in devices])
    process.gpu_utilisation = max([device.utilisation for device in devices if device.utilisation is not None], default=None)
    process.host_rss = _bytes([gauges.host_rss])
    process.workers_rss = _bytes([gauges.workers_rss])
    if gauges.host_rss_slope is not None:
        process.host_rss_slope = min(max(gauges.host_rss_slope, -float(MAX_BYTES)), float(MAX_BYTES))
    if gauges.degraded_frames is not None:
        process.degraded_frames = min(max(gauges.degraded_frames, 0), MAX_FRAMES)
    if gauges.compiling_for is not None:
        process.compiling_for = seconds_of(gauges.compiling_for)


def _bytes(values: list[int | None]) -> int | None:
    """The largest, as far as it can be true."""
    seen = [value for value in values if value is not None]
    return min(max(*seen, 0), MAX_BYTES) if seen else None
