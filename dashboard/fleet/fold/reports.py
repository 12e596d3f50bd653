"""Folds reports into facts, one window at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from compilewatch.wire.report import Region, Report
from compilewatch.wire.text import clip_data

from dashboard.fleet.fold.counts import EAGER, Calls
from dashboard.fleet.fold.decode import Row, Sender, report_of, sender_of
from dashboard.fleet.fold.events import compiles_fold, findings_fold, start_fold
from dashboard.fleet.fold.facts import Facts, InstanceFact, Latched
from dashboard.fleet.fold.keys import Place, instance_of
from dashboard.fleet.fold.process import process_of
from dashboard.fleet.fold.text import name
from dashboard.fleet.fold.window import Window, window_of


class Folded(NamedTuple):
    """The facts of the rows that could be read, and the error of each row that could not."""

    facts: Facts
    failed: dict[int, str]


def rows_fold(rows: Iterable[Row]) -> Folded:
    """Folds a batch; a row that cannot be read steps aside with its error and changes no other."""
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
    sender = sender_of(row.project, row.instance, row.identity)
    report = report_of(row)
    window = window_of(report, row.clock_offset)
    facts = Facts()
    _calls_fold(facts, sender, report, window)
    process = process_of(report, window)
    if window.long:
        facts.process_hours[sender.source, window.minute // 60] = process
    else:
        facts.process_minutes[sender.source, window.minute] = process
        facts.note_changed(sender.source.version, window.minute, window.minute)
    compiles_fold(facts, sender, report, window)
    findings_fold(facts, sender, report, window)
    start_fold(facts, sender, report, window)
    _instance_fold(facts, sender, report, window)
    return facts


def _calls_fold(facts: Facts, sender: Sender, report: Report, window: Window) -> None:
    table, at = (facts.hours, window.minute // 60) if window.long else (facts.minutes, window.minute)
    for region in report.regions:
        place = Place(name(region.name, 200), name(region.bucket, 64), name(region.mode, 64), name(region.runtime, 32), region.outermost)
        calls, key = _calls_of(region, window), (sender.source, place, at)
        if key in table:
            table[key].add(calls)
        else:
            table[key] = calls


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
        unknown=region.unknown + sum(count for cause, count in by.items() if cause not in EAGER),
        sampled=region.sampled,
        covered=window.seconds,
        latency=region.latency,
        gpu=region.gpu,
        warmup=region.warmup,
    )


def _instance_fold(facts: Facts, sender: Sender, report: Report, window: Window) -> None:
    source, losses = sender.source, report.losses
    facts.instances[instance_of(source)] = InstanceFact(
        source=source,
        seq=report.seq[1],
        digest=sender.digest,
        identity={**sender.columns, "started": window.moment(sender.identity.started)},
        clock_offset=window.offset,
        compiling_for=max(report.gauges.compiling_for or 0.0, 0.0),
        first_minute=window.first_minute,
        last_minute=window.minute,
        last_seen=window.end,
        ready=min((window.moment(fact.at) for fact in report.facts if fact.kind == "ready"), default=None),
        losses=(
            losses.merged_windows,
            losses.truncated_events,
            losses.spool_errors,
            losses.internal_errors,
            losses.rejected_windows,
        ),
        latched=_latched(report, window),
    )
    facts.presence[source.version, source.environment] = {(window.first_minute, window.minute)}
    facts.note_seen(source.version, window.start, window.end)
    if sender.identity.simulated:
        facts.simulated.add(source.version)


def _latched(report: Report, window: Window) -> dict[tuple[str, str], Latched]:
    """Frames that run eager for good, by frame and cause."""
    found: dict[tuple[str, str], Latched] = {}
    for fact in report.facts:
        if fact.kind == "latched_eager":
            data = clip_data(fact.data)
            frame = str(data.pop("frame", "")), str(data.pop("cause", ""))
            told = window.moment(fact.at), json.dumps(data, sort_keys=True)
            found[frame] = min(told, found.get(frame, told))
    return found
