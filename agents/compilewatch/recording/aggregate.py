"""Adding up: events into a window, and windows into a longer one; counts stay exact, samples are the first ones."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import fields, replace

from compilewatch.recording.series_buffer import take
from compilewatch.wire.messages import (
    MAX_COMPILES,
    MAX_FINDINGS,
    MAX_VALUES,
    Compile,
    Fact,
    Finding,
    Gauges,
    Region,
    Report,
    pattern_rank,
)
from compilewatch.wire.sketch import Sketch

MAX_FACTS = 200
MAX_WAITING = 500
MAX_GROUPS = 500
"""Findings that wait to be added up, and groups of like ones that a window holds; what is beyond is counted under `MORE`."""
MORE = "more than one window holds"


class EventLog:
    """Events of the open window, appended from any thread. Findings are added up every now and then, so that however many there are,
    each is counted and few are held."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        """With facts that hold already."""
        self.truncated = 0
        self._compiles: list[Compile] = []
        self._facts = list(facts)
        self._findings: list[Finding] = []
        self._groups: dict[tuple[str, str, str], Finding] = {}
        self._counted: dict[tuple[str, ...], Fact] = {}
        self._adding = threading.Lock()

    def compile(self, event: Compile) -> None:
        """Keeps the compilation, as far as the wire has room for it."""
        if len(self._compiles) < MAX_COMPILES:
            self._compiles.append(event)
        else:
            self.truncated += 1

    def fact(self, event: Fact) -> None:
        """Keeps the fact, as far as the wire has room for it."""
        if len(self._facts) < MAX_FACTS:
            self._facts.append(event)
        else:
            self.truncated += 1

    def fact_counted(self, event: Fact) -> None:
        """Keeps the fact, or counts it where the window holds the same already."""
        key = event.kind, *(f"{name}={value}" for name, value in event.data.items())
        with self._adding:
            known = self._counted.get(key)
            if known is not None:
                known.data["count"] += 1
            elif len(self._counted) < MAX_FACTS:
                event.data["count"] = 1
                self._counted[key] = event
                self.fact(event)
            else:
                self.truncated += 1

    def finding(self, event: Finding) -> None:
        """Keeps the finding; never waits."""
        self._findings.append(event)
        if len(self._findings) >= MAX_WAITING and self._adding.acquire(blocking=False):
            try:
                self._add_up()
            finally:
                self._adding.release()

    def close(self, report: Report) -> Report:
        """Puts the events into the report, cut to what the wire allows."""
        report.compiles = take(self._compiles)
        with self._adding:
            report.facts, self._counted = take(self._facts), {}
            self._add_up()
            groups, self._groups = self._groups, {}
        report.findings = list(groups.values())
        self.truncated += cut(report)
        return report

    def _add_up(self) -> None:
        for finding in take(self._findings):
            key = finding_key(finding)
            if key not in self._groups and len(self._groups) >= MAX_GROUPS:
                self.truncated += 1
                key = finding.kind, MORE, ""
            _finding_add(self._groups, key, finding)


def cut(report: Report) -> int:
    """Cuts samples to the limits of the wire and answers how many fell away; the counts of findings stay exact."""
    lost = max(0, len(report.compiles) - MAX_COMPILES) + max(0, len(report.facts) - MAX_FACTS)
    del report.compiles[MAX_COMPILES:], report.facts[MAX_FACTS:]
    kinds = len({finding.kind for finding in report.findings})
    room = MAX_FINDINGS - kinds
    if len(report.findings) > MAX_FINDINGS:
        tail = report.findings[room:]
        lost += len(tail)
        rest = [Finding(finding.kind, MORE, "", finding.count, finding.seconds) for finding in tail]
        report.findings = findings_merge(report.findings[:room] + rest)
    return lost


def finding_key(finding: Finding) -> tuple[str, str, str]:
    """What makes two findings like ones."""
    return finding.kind, finding.text, finding.where


def findings_merge(findings: Iterable[Finding]) -> list[Finding]:
    """Like findings as one, with the sum of their counts, in the order of their first."""
    merged: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        _finding_add(merged, finding_key(finding), finding)
    return list(merged.values())


def _finding_add(
    groups: dict[tuple[str, str, str], Finding], key: tuple[str, str, str], finding: Finding
) -> None:
    known = groups.get(key)
    if known is None:
        groups[key] = replace(finding, text=key[1], where=key[2])
    else:
        known.count += finding.count
        known.seconds += finding.seconds
        known.values = list(dict.fromkeys(known.values + finding.values))[:MAX_VALUES]
        known.distinct = max(known.distinct, finding.distinct)
        known.pattern = max(known.pattern, finding.pattern, key=pattern_rank)


def region_key(region: Region) -> tuple[str, str, str, str, bool]:
    """What makes two regions the same one."""
    return region.name, region.bucket, region.mode, region.runtime, region.outermost


def regions_merge(regions: Iterable[Region]) -> list[Region]:
    """Regions of one key as one; the given ones may be changed."""
    merged: dict[tuple[str, str, str, str, bool], Region] = {}
    for region in regions:
        known = merged.setdefault(region_key(region), region)
        if known is not region:
            _region_add(known, region)
    return list(merged.values())


def _region_add(into: Region, other: Region) -> None:
    for name in ("calls", "errors", "compiled", "partial", "unknown", "sampled"):
        setattr(into, name, getattr(into, name) + getattr(other, name))
    for cause, count in other.eager_by.items():
        into.eager_by[cause] = into.eager_by.get(cause, 0) + count
    if other.items is not None:
        into.items = (into.items or 0.0) + other.items
    into.latency = _sketch_add(into.latency, other.latency)
    into.gpu = _sketch_add(into.gpu, other.gpu)
    into.warmup = _sketch_add(into.warmup, other.warmup)
    into.stalled = _sketch_add(into.stalled, other.stalled)


def _sketch_add(into: Sketch | None, other: Sketch | None) -> Sketch | None:
    if into is None or other is None:
        return into or other
    into.merge(other)
    return into


def reports_merge(first: Report, second: Report) -> tuple[Report, int]:
    """Two windows in a row as one, and how many samples were cut for it; the given ones may be changed."""
    merged = Report(
        (first.seq[0], second.seq[1]),
        (min(first.window[0], second.window[0]), max(first.window[1], second.window[1])),
        regions_merge(first.regions + second.regions),
        first.compiles + second.compiles,
        findings_merge(first.findings + second.findings),
        _gauges_merge(first.gauges, second.gauges),
        first.facts + second.facts,
        second.losses,
    )
    return merged, cut(merged)


def _gauges_merge(first: Gauges, second: Gauges) -> Gauges:
    """The later value where there is one; of a device the higher peak."""
    latest = Gauges()
    for field in fields(Gauges):
        later, earlier = getattr(second, field.name), getattr(first, field.name)
        setattr(latest, field.name, earlier if later is None or later == [] else later)
    peaks = {device.index: device.peak for device in first.devices}
    for device in latest.devices:
        device.peak = max(filter(None, (device.peak, peaks.get(device.index))), default=device.peak)
    return latest
