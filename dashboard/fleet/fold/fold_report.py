"""Report fold: reports to facts, one window at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from compilewatch.wire.clip import clip_data
from compilewatch.wire.messages import Gauges, Region, Report

from dashboard.fleet.fold.cold_start import fold_cold_start
from dashboard.fleet.fold.column_text import clip_label, clip_name
from dashboard.fleet.fold.command_receipts import parse_receipts
from dashboard.fleet.fold.counters import COUNTED_EAGER_CAUSES, COUNTER_MAX, CallCounts
from dashboard.fleet.fold.decode import (
    MAX_INT32,
    EncodedReport,
    ReportSender,
    decode_report,
    decode_sender,
)
from dashboard.fleet.fold.events import compiles_fold, findings_fold
from dashboard.fleet.fold.facts import EagerFallback, Facts, InstanceFact, ProcessExit, value_add
from dashboard.fleet.fold.keys import RegionKey, to_instance_key
from dashboard.fleet.fold.numerics import parse_parities
from dashboard.fleet.fold.process import clamp_seconds, fold_process
from dashboard.fleet.fold.report_window import Window, correct_window
from dashboard.fleet.fold.roles import is_uncounted_role
from dashboard.fleet.watermark import is_late
from dashboard.ingest.numbering import count_windows


class FoldResult(NamedTuple):
    """Facts of the readable rows, and the error of each unreadable row."""

    facts: Facts
    failed: dict[int, str]


def rows_fold(rows: Sequence[EncodedReport]) -> FoldResult:
    """Fold a batch. An unreadable row yields its error and leaves the other rows unchanged."""
    facts = Facts()
    try:
        for row in rows:
            _row_add(facts, row)
    # The failed row may be half folded, so each row is folded separately.
    except Exception:  # noqa: BLE001
        return _rows_fold_separately(rows)
    return FoldResult(facts, {})


def _rows_fold_separately(rows: Sequence[EncodedReport]) -> FoldResult:
    facts, failed = Facts(), {}
    for row in rows:
        try:
            one = row_fold(row)
        # Any error belongs to its row: the error is stored, shown, and replayable.
        except Exception as error:  # noqa: BLE001
            failed[row.id] = f"{type(error).__name__}: {error}"
        else:
            facts.merge(one)
    return FoldResult(facts, failed)


def row_fold(row: EncodedReport) -> Facts:
    """Return the facts of one report."""
    facts = Facts()
    _row_add(facts, row)
    return facts


def _row_add(facts: Facts, row: EncodedReport) -> None:
    sender = decode_sender(row.project, row.instance, row.identity)
    report = decode_report(row)
    window = correct_window(report, row.clock_offset)
    _calls_fold(facts, sender, report, window)
    process = fold_process(report, window)
    if is_uncounted_role(sender.columns["role"]) or (window.long and not _is_active(report)):
        # A long window does not reveal the minute of the first call. Such a window therefore covers
        # no time before the process is active.
        process.covered = 0.0
    if window.long:
        value_add(facts.process_hours, (sender.source, window.minute // 60), process)
    else:
        value_add(facts.process_minutes, (sender.source, window.minute), process)
        facts.note_changed(sender.source.version, window.minute, window.minute)
    compiles_fold(facts, sender, report, window)
    findings_fold(facts, sender, report, window)
    fold_cold_start(facts, sender, report, window)
    _instance_fold(facts, sender, report, window, row.received)


def _calls_fold(facts: Facts, sender: ReportSender, report: Report, window: Window) -> None:
    table, at = (
        (facts.hours, window.minute // 60) if window.long else (facts.minutes, window.minute)
    )
    for region in report.regions:
        place = RegionKey(
            clip_name(region.name, 200),
            clip_name(region.bucket, 64),
            clip_name(region.mode, 64),
            clip_name(region.runtime, 32),
            region.outermost,
        )
        value_add(table, (sender.source, place, at), _count_calls(region, window))


def _count_calls(region: Region, window: Window) -> CallCounts:
    """Return the calls of a region.

    Ingestion has checked the numbers. The sketches were decoded for this fold alone and need no
    copy.
    """
    by = region.eager_by
    return CallCounts(
        calls=region.calls,
        errors=region.errors,
        items=region.items,
        compiled=region.compiled,
        partial=region.partial,
        eager=[by.get(cause, 0) for cause in COUNTED_EAGER_CAUSES]
        if by
        else [0] * len(COUNTED_EAGER_CAUSES),
        unknown=min(
            region.unknown
            + sum(count for cause, count in by.items() if cause not in COUNTED_EAGER_CAUSES),
            COUNTER_MAX,
        ),
        sampled=region.sampled,
        covered=window.seconds,
        latency=region.latency,
        gpu=region.gpu,
        warmup=region.warmup,
        stalled=region.stalled,
    )


def _instance_fold(
    facts: Facts, sender: ReportSender, report: Report, window: Window, received: float | None
) -> None:
    source = sender.source
    fact = _make_instance_fact(sender, report, window, received)
    value_add(facts.instances, to_instance_key(source), fact)
    facts.presence.setdefault((source.version, source.environment), set()).add(
        (window.first_minute, window.minute)
    )
    facts.note_seen(source.version, window.start, window.end)
    if sender.identity.simulated:
        facts.simulated.add(source.version)


def _make_instance_fact(
    sender: ReportSender, report: Report, window: Window, received: float | None
) -> InstanceFact:
    losses = report.losses
    return InstanceFact(
        source=sender.source,
        seq=report.seq[1],
        digest=sender.digest,
        identity={**sender.columns, "started": window.moment(sender.identity.started)},
        clock_offset=window.offset,
        compiling=_read_compiling(report.gauges),
        active=window.first_minute
        if _is_active(report) and not is_uncounted_role(sender.columns["role"])
        else None,
        ended=_find_exit(report, window),
        first_minute=window.first_minute,
        last_minute=window.minute,
        last_seen=window.end,
        calls=_count_known_calls(report),
        late_windows=count_windows(report)
        if received is not None and is_late(window.minute, received)
        else 0,
        ready=min(
            (window.moment(fact.at) for fact in report.facts if fact.kind == "ready"), default=None
        ),
        losses=(
            losses.merged_windows,
            losses.truncated_events,
            losses.spool_errors,
            losses.internal_errors,
            losses.rejected_windows,
        ),
        latched=_find_eager_fallbacks(report, window),
        receipts=parse_receipts(report, window),
        parities=parse_parities(report, window),
    )


def _is_active(report: Report) -> bool:
    """Return whether the process called watched code or compiled. Before that, the process starts
    or helps."""
    return bool(report.compiles) or any(region.calls for region in report.regions)


def _find_exit(report: Report, window: Window) -> ProcessExit | None:
    """Return how the process ended, and the end of its last window. A later report shows that the
    process did not end."""
    found = None
    for fact in report.facts:
        if fact.kind == "ended":
            code, signal = fact.data.get("code"), fact.data.get("signal")
            known = (
                code
                if isinstance(code, int) and not isinstance(code, bool) and abs(code) <= MAX_INT32
                else -1
            )
            newest = window.end, known, clip_label(signal, 16) if isinstance(signal, str) else ""
            found = newest if found is None else max(found, newest)
    return found


def _count_known_calls(report: Report) -> tuple[int, int, int]:
    """Return the report's number, its outermost calls of known execution mode, and the eager calls
    among them."""
    regions = [region for region in report.regions if region.outermost]
    eager = sum(
        region.eager_by.get(cause, 0) for region in regions for cause in COUNTED_EAGER_CAUSES
    )
    known = eager + sum(region.compiled + region.partial for region in regions)
    return (report.seq[1], known, eager) if known else (0, 0, 0)


def _read_compiling(gauges: Gauges) -> tuple[float, str, float | None]:
    usual = None if gauges.compiling_usual is None else clamp_seconds(gauges.compiling_usual)
    return (
        max(gauges.compiling_for or 0.0, 0.0),
        clip_label(gauges.compiling_frame or "", 512),
        usual,
    )


def _find_eager_fallbacks(report: Report, window: Window) -> dict[tuple[str, str], EagerFallback]:
    """Return the earliest report of each eager fallback, by frame and cause."""
    found: dict[tuple[str, str], EagerFallback] = {}
    for fact in report.facts:
        if fact.kind == "latched_eager":
            data = clip_data(fact.data)
            frame = (
                clip_label(str(data.pop("frame", "")), 512),
                clip_label(str(data.pop("cause", "")), 512),
            )
            newest = window.moment(fact.at), json.dumps(data, sort_keys=True)
            found[frame] = min(newest, found.get(frame, newest))
    return found
