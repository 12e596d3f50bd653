"""Validation: rules that a decoded report must meet so that the fold cannot fail: ranges of numbers
and times, sketches, and sequence. Pure code."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from compilewatch.wire.messages import (
    MAX_COMPILES,
    MAX_FINDINGS,
    MAX_VALUES,
    MAX_WINDOW_AGE,
    Compile,
    Device,
    Gauges,
    Identity,
    Region,
    Report,
    SeqRange,
)
from compilewatch.wire.sketch import MAX_INDEX, MIN_INDEX, Sketch

from dashboard.ingest.numbering import count_allowed_numbers
from dashboard.ingest.sequence_ranges import MAX_SEQ

MAX_COUNT = 1 << 40
MAX_BYTES = 1 << 53
MAX_INT32 = (1 << 31) - 1
MAX_NUMBER = 1e15
MAX_STALL_S = 7 * 86400.0
"""No caller waits longer than a week for a compilation."""
MAX_UNIX_TIME_S = 32503680000.0
"""The year 3000. Milliseconds in place of seconds exceed it."""
MAX_FUTURE_S = 300.0
SKEW_TOLERANCE_S = 2.0

_REGION_COUNTS = ("calls", "errors", "compiled", "partial", "unknown", "sampled")
_LOSS_COUNTS = (
    "merged_windows",
    "truncated_events",
    "spool_errors",
    "internal_errors",
    "rejected_windows",
)
_IDENTITY_INTS = ("rank", "local_rank", "world_size", "pid", "gpu_count")
_DEVICE_BYTES = ("allocated", "peak", "reserved", "graph_pool")
_region_counts = attrgetter(*_REGION_COUNTS)
_loss_counts = attrgetter(*_LOSS_COUNTS)
_identity_ints = attrgetter(*_IDENTITY_INTS)


class InvalidReport(ValueError):
    """The reason why a report or an identity is refused; the text names the field."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def correct_skew(moment: float, offset: float) -> float:
    """Converts a time of the agent's clock to the server's clock. Small offsets are network delay
    and are ignored."""
    return moment + offset if abs(offset) > SKEW_TOLERANCE_S else moment


def seq_check(seq: SeqRange) -> None:
    """Checks for two positive integers in order."""
    if not 1 <= seq[0] <= seq[1] <= MAX_SEQ:
        raise InvalidReport(
            "invalid_seq",
            f"seq: expected two whole numbers from 1 to 2^53 in order, got {seq[0]} and {seq[1]}",
        )


def length_check(report: Report) -> None:
    """Checks that the range has at most the numbers that fit into its window. Later reports in a
    covered range would be acknowledged as stored."""
    count, most = report.seq[1] - report.seq[0] + 1, count_allowed_numbers(report)
    if count > most:
        seconds = report.window[1] - report.window[0]
        raise InvalidReport(
            "invalid_seq",
            f"seq: expected at most {most} numbers for a window of {seconds:.0f} s, got {count}",
        )


def window_check(window: tuple[float, float], offset: float, now: float) -> bool:
    """True if the window is young enough to be new. Raises InvalidReport if it ends in the future
    or before its start."""
    start, end = window
    if not 0.0 <= start <= end <= MAX_UNIX_TIME_S:
        raise InvalidReport(
            "invalid_window", "window: expected a start and a later end in Unix seconds"
        )
    end = correct_skew(end, offset)
    if end > now + MAX_FUTURE_S:
        raise InvalidReport("in_future", f"window: ends {end - now:.0f} s in the future")
    return end >= now - MAX_WINDOW_AGE


def identity_check(identity: Identity) -> None:
    """Checks that numbers fit their columns, the start is a valid time, and names are present."""
    if (
        len(identity.id) != 26
        or not identity.id.isascii()
        or not identity.id.isalnum()
        or identity.id != identity.id.lower()
    ):
        raise InvalidReport("bad_request", "instance.id: expected 26 digits and lower-case letters")
    for name in ("model", "version"):
        if not getattr(identity, name).strip():
            raise InvalidReport("bad_request", f"instance.{name}: must not be empty")
    _check_time(identity.started, "instance.started", "bad_request")
    for name, number in zip(_IDENTITY_INTS, _identity_ints(identity), strict=True):
        if not 0 <= number <= MAX_INT32:
            raise InvalidReport(
                "bad_request", f"instance.{name}: expected a whole number from 0 to 2^31 - 1"
            )


def report_check(report: Report) -> None:
    """Checks everything in a report except its sequence range and its window."""
    for number, region in enumerate(report.regions):
        _check_region(region, f"regions[{number}]")
    if len(report.compiles) > MAX_COMPILES or len(report.findings) > MAX_FINDINGS:
        raise InvalidReport(
            "invalid_report",
            f"expected at most {MAX_COMPILES} compiles and {MAX_FINDINGS} findings",
        )
    for number, compiled in enumerate(report.compiles):
        _check_compile(compiled, f"compiles[{number}]")
    for number, finding in enumerate(report.findings):
        _check_count(finding.count, f"findings[{number}].count")
        _check_count(finding.distinct, f"findings[{number}].distinct")
        if len(finding.values) > MAX_VALUES:
            raise InvalidReport(
                "invalid_report", f"findings[{number}].values: expected at most {MAX_VALUES}"
            )
        if not 0 <= finding.seconds <= MAX_NUMBER:
            raise InvalidReport(
                "invalid_report", f"findings[{number}].seconds: expected seconds from 0 to 1e15"
            )
    for number, fact in enumerate(report.facts):
        _check_time(fact.at, f"facts[{number}].at")
    _check_gauges(report.gauges)
    losses = _loss_counts(report.losses)
    if min(losses) < 0 or max(losses) > MAX_COUNT:
        _raise_for_count(_LOSS_COUNTS, losses, "losses")


def _check_region(region: Region, where: str) -> None:
    counts = _region_counts(region)
    if min(counts) < 0 or max(counts) > MAX_COUNT:
        _raise_for_count(_REGION_COUNTS, counts, where)
    for cause, count in region.eager_by.items():
        _check_count(count, f"{where}.eager_by.{cause[:64]}")
    if region.items is not None and not 0 <= region.items <= MAX_NUMBER:
        raise InvalidReport("invalid_report", f"{where}.items: expected a number from 0 to 1e15")
    for name in ("latency", "gpu", "warmup", "stalled"):
        sketch = getattr(region, name)
        if sketch is not None:
            _check_sketch(sketch, f"{where}.{name}")
    if region.stalled is not None and region.stalled.max > MAX_STALL_S:
        raise InvalidReport(
            "invalid_report", f"{where}.stalled.max: expected at most {MAX_STALL_S:.0f} seconds"
        )
    if region.stalled is not None and region.stalled.count > region.calls:
        raise InvalidReport(
            "invalid_report",
            f"{where}.stalled: expected at most the number of calls ({region.calls}), got "
            f"{region.stalled.count}",
        )


def _check_sketch(sketch: Sketch, where: str) -> None:
    problem = sketch.problem()
    if problem is None and sketch.count > MAX_COUNT:
        problem = "count must be at most 2^40"
    if problem is None and not MIN_INDEX <= sketch.offset <= MAX_INDEX:
        problem = f"offset must lie between {MIN_INDEX} and {MAX_INDEX}"
    if problem is None and not (0 <= sketch.sum <= MAX_NUMBER and sketch.max <= MAX_NUMBER):
        problem = "sum and max must lie between 0 and 1e15"
    if problem is not None:
        raise InvalidReport("invalid_sketch", f"{where}: {problem}")


def _check_compile(compiled: Compile, where: str) -> None:
    _check_time(compiled.at, f"{where}.at")
    if not 0 <= compiled.line <= MAX_INT32:
        raise InvalidReport(
            "invalid_report", f"{where}.line: expected a whole number from 0 to 2^31 - 1"
        )
    if compiled.new_peak is not None and not 0 <= compiled.new_peak <= MAX_BYTES:
        raise InvalidReport("invalid_report", f"{where}.new_peak: expected bytes from 0 to 2^53")
    for name in ("entries", "limit"):
        value = getattr(compiled, name)
        if value is not None and not 0 <= value <= MAX_INT32:
            raise InvalidReport(
                "invalid_report", f"{where}.{name}: expected a whole number from 0 to 2^31 - 1"
            )
    for phase, seconds in _iterate_durations(compiled):
        if not -MAX_NUMBER <= seconds <= MAX_NUMBER:
            raise InvalidReport("invalid_report", f"{where}.{phase}: expected seconds below 1e15")


def _iterate_durations(compiled: Compile) -> Iterator[tuple[str, float]]:
    for phase, seconds in compiled.seconds.items():
        yield f"seconds.{phase[:64]}", seconds
    if compiled.saved is not None:
        yield "saved", compiled.saved


def _check_gauges(gauges: Gauges) -> None:
    for number, device in enumerate(gauges.devices):
        _check_device(device, f"gauges.devices[{number}]")
    for name in ("host_rss", "workers_rss"):
        value = getattr(gauges, name)
        if value is not None and not 0 <= value <= MAX_BYTES:
            raise InvalidReport("invalid_report", f"gauges.{name}: expected bytes from 0 to 2^53")
    if gauges.host_rss_slope is not None and not -MAX_NUMBER <= gauges.host_rss_slope <= MAX_NUMBER:
        raise InvalidReport(
            "invalid_report", "gauges.host_rss_slope: expected bytes per hour from -1e15 to 1e15"
        )
    if gauges.degraded_frames is not None and not 0 <= gauges.degraded_frames <= MAX_INT32:
        raise InvalidReport(
            "invalid_report", "gauges.degraded_frames: expected a whole number from 0 to 2^31 - 1"
        )
    for name in ("compiling_for", "compiling_usual"):
        value = getattr(gauges, name)
        if value is not None and not 0 <= value <= MAX_NUMBER:
            raise InvalidReport("invalid_report", f"gauges.{name}: expected seconds from 0 to 1e15")


def _check_device(device: Device, where: str) -> None:
    if not 0 <= device.index <= MAX_INT32:
        raise InvalidReport(
            "invalid_report", f"{where}.index: expected a whole number from 0 to 2^31 - 1"
        )
    for name in _DEVICE_BYTES:
        value = getattr(device, name)
        if value is not None and not 0 <= value <= MAX_BYTES:
            raise InvalidReport("invalid_report", f"{where}.{name}: expected bytes from 0 to 2^53")
    if device.utilisation is not None and not 0 <= device.utilisation <= 1:
        raise InvalidReport("invalid_report", f"{where}.utilisation: expected a share from 0 to 1")


def _check_count(count: int, where: str) -> None:
    if not 0 <= count <= MAX_COUNT:
        raise InvalidReport("invalid_report", f"{where}: expected a count from 0 to 2^40")


def _check_time(moment: float, where: str, code: str = "invalid_report") -> None:
    if not 0.0 <= moment <= MAX_UNIX_TIME_S:
        raise InvalidReport(code, f"{where}: expected Unix seconds")


def _raise_for_count(names: tuple[str, ...], counts: tuple[int, ...], where: str) -> None:
    for name, count in zip(names, counts, strict=True):
        _check_count(count, f"{where}.{name}")
