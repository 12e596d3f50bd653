"""Folds reports into facts, one window at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from compilewatch.wire.clip import clip_data
from compilewatch.wire.messages import Gauges, Region, Report

from dashboard.fleet.fold.cold_start import start_fold
from dashboard.fleet.fold.column_text import label, name
from dashboard.fleet.fold.command_receipts import receipts_of
from dashboard.fleet.fold.counters import EAGER, MOST, Calls
from dashboard.fleet.fold.decode import MAX_INT32, Row, Sender, report_of, sender_of
from dashboard.fleet.fold.events import compiles_fold, findings_fold
from dashboard.fleet.fold.facts import Ended, Facts, InstanceFact, Latched, value_add
from dashboard.fleet.fold.keys import Place, instance_of
from dashboard.fleet.fold.numerics import parities_of
from dashboard.fleet.fold.process import process_of, seconds_of
from dashboard.fleet.fold.report_window import Window, window_of
from dashboard.fleet.fold.roles import never_counts
from dashboard.fleet.watermark import late
from dashboard.ingest.numbering import windows_of


class Folded(NamedTuple):
    """The facts of the rows that could be read, and the error of each row that could not."""

    facts: Facts
    failed: dict[int, str]


def rows_fold(rows: Sequence[Row]) -> Folded:
    """Folds a batch; a row that cannot be read steps aside with its error and changes no other."""
    facts = Facts()
    try:
        for row in rows:
            _row_add(facts, row)
    except Exception:  # noqa: BLE001  # one of them is bad, and may have left a part of itself: each by itself then
        return _rows_fold_apart(rows)
    return Folded(facts, {})


def _rows_fold_apart(rows: Sequence[Row]) -> Folded:
    facts, failed = Facts(), {}
    for row in rows:
        try:
            one = row_fold(row)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the row's own: kept with it, shown, and replayable
            failed[row.id] = f"{type(error).__name__}: {error}"
        else:
            facts.merge(one)
    return Folded(facts, failed)


def row_fold(row: Row) -> Facts:
    """The facts of one report."""
    facts = Facts()
    _row_add(facts, row)
    return facts


def _row_add(facts: Facts, row: Row) -> None:
    sender = sender_of(row.project, row.instance, row.identity)
    report = report_of(row)
    window = window_of(report, row.clock_offset)
    _calls_fold(facts, sender, report, window)
    process = process_of(report, window)
    if never_counts(sender.columns["role"]) or (window.long and not _is_active(report)):
        # The seconds that a version's instances cover: a long window has no minute by which a first call could be found later.
        process.covered = 0.0
    if window.long:
        value_add(facts.process_hours, (sender.source, window.minute // 60), process)
    else:
        value_add(facts.process_minutes, (sender.source, window.minute), process)
        facts.note_changed(sender.source.version, window.minute, window.minute)
    compiles_fold(facts, sender, report, window)
    findings_fold(facts, sender, report, window)
    start_fold(facts, sender, report, window)
    _instance_fold(facts, sender, report, window, row.received)


def _calls_fold(facts: Facts, sender: Sender, report: Report, window: Window) -> None:
    table, at = (facts.hours, window.minute // 60) if window.long else (facts.minutes, window.minute)
    for region in report.regions:
        place = Place(name(region.name, 200), name(region.bucket, 64), name(region.mode, 64), name(region.runtime, 32), region.outermost)
        value_add(table, (sender.source, place, at), _calls_of(region, window))


def _calls_of(region: Region, window: Window) -> Calls:
    """The numbers were checked when the report was accepted; the sketches stay the report's own, decoded for this fold alone."""
    by = region.eager_by
    return Calls(
        calls=region.calls,
        errors=region.errors,
        items=region.items,
        compiled=region.compiled,
        partial=region.partial,
        eager=[by.get(cause, 0) for cause in EAGER] if by else [0] * len(EAGER),
        unknown=min(region.unknown + sum(count for cause, count in by.items() if cause not in EAGER), MOST),
        sampled=region.sampled,
        covered=window.seconds,
        latency=region.latency,
        gpu=region.gpu,
        warmup=region.warmup,
        stalled=region.stalled,
    )


def _instance_fold(facts: Facts, sender: Sender, report: Report, window: Window, received: float | None) -> None:
    source, losses = sender.source, report.losses
    fact = InstanceFact(
        source=source,
        seq=report.seq[1],
        digest=sender.digest,
        identity={**sender.columns, "started": window.moment(sender.identity.started)},
        clock_offset=window.offset,
        compiling=_compiling(report.gauges),
        active=window.first_minute if _is_active(report) and not never_counts(sender.columns["role"]) else None,
        ended=_ended(report, window),
        first_minute=window.first_minute,
        last_minute=window.minute,
        last_seen=window.end,
        calls=_calls_known(report),
        late_windows=windows_of(report) if received is not None and late(window.minute, received) else 0,
        ready=min((window.moment(fact.at) for fact in report.facts if fact.kind == "ready"), default=None),
        losses=(
            losses.merged_windows,
            losses.truncated_events,
            losses.spool_errors,
            losses.internal_errors,
            losses.rejected_windows,
        ),
        latched=_latched(report, window),
        receipts=receipts_of(report, window),
        parities=parities_of(report, window),
    )
    value_add(facts.instances, instance_of(source), fact)
    facts.presence.setdefault((source.version, source.environment), set()).add((window.first_minute, window.minute))
    facts.note_seen(source.version, window.start, window.end)
    if sender.identity.simulated:
        facts.simulated.add(source.version)


def _is_active(report: Report) -> bool:
    """Whether the process called what is watched, or compiled: before that it only starts, or helps."""
    return bool(report.compiles) or any(region.calls for region in report.regions)


def _ended(report: Report, window: Window) -> Ended | None:
    """How the process ended, as its last report says, and the end of that report's window: what reports later did not end."""
    found = None
    for fact in report.facts:
        if fact.kind == "ended":
            code, signal = fact.data.get("code"), fact.data.get("signal")
            known = code if isinstance(code, int) and not isinstance(code, bool) and abs(code) <= MAX_INT32 else -1
            newest = window.end, known, label(signal, 16) if isinstance(signal, str) else ""
            found = newest if found is None else max(found, newest)
    return found


def _calls_known(report: Report) -> tuple[int, int, int]:
    """The calls of outermost regions of which it is known whether they ran compiled, behind the report's number."""
    regions = [region for region in report.regions if region.outermost]
    eager = sum(region.eager_by.get(cause, 0) for region in regions for cause in EAGER)
    known = eager + sum(region.compiled + region.partial for region in regions)
    return (report.seq[1], known, eager) if known else (0, 0, 0)


def _compiling(gauges: Gauges) -> tuple[float, str, float | None]:
    usual = None if gauges.compiling_usual is None else seconds_of(gauges.compiling_usual)
    return max(gauges.compiling_for or 0.0, 0.0), label(gauges.compiling_frame or "", 512), usual


def _latched(report: Report, window: Window) -> dict[tuple[str, str], Latched]:
    """Frames that run eager for good, by frame and cause."""
    found: dict[tuple[str, str], Latched] = {}
    for fact in report.facts:
        if fact.kind == "latched_eager":
            data = clip_data(fact.data)
            frame = label(str(data.pop("frame", "")), 512), label(str(data.pop("cause", "")), 512)
            newest = window.moment(fact.at), json.dumps(data, sort_keys=True)
            found[frame] = min(newest, found.get(frame, newest))
    return found
