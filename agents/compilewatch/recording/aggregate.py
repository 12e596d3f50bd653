"""Aggregation: adds events to a window, and windows to a longer one. Counts stay exact; the
first samples stay."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import fields, replace

from compilewatch.recording.series_buffer import take_snapshot
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
MAX_PENDING_FINDINGS = 500
MAX_FINDING_GROUPS = 500
"""MAX_WAITING: findings that wait for aggregation. MAX_GROUPS: groups of equal findings in a
window. Findings beyond the limit are counted under `OVERFLOW_TEXT`."""
OVERFLOW_TEXT = "over the limit of one window"


class EventLog:
    """Events of the open window, appended from any thread.

    Findings are aggregated at intervals. Each finding is counted, and memory stays bounded."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        """Starts with `facts` that already apply."""
        self.truncated_count = 0
        self._compiles: list[Compile] = []
        self._facts = list(facts)
        self._findings: list[Finding] = []
        self._finding_groups: dict[tuple[str, str, str], Finding] = {}
        self._counted_facts: dict[tuple[str, ...], Fact] = {}
        self._lock = threading.Lock()

    def add_compile(self, event: Compile) -> None:
        """Stores the compilation if the wire limit allows it; counts it as truncated otherwise."""
        if len(self._compiles) < MAX_COMPILES:
            self._compiles.append(event)
        else:
            self.truncated_count += 1

    def add_fact(self, event: Fact) -> None:
        """Stores the fact if the wire limit allows it; counts it as truncated otherwise."""
        if len(self._facts) < MAX_FACTS:
            self._facts.append(event)
        else:
            self.truncated_count += 1

    def count_fact(self, event: Fact) -> None:
        """Stores the fact, or increments the count of an equal fact in this window."""
        key = event.kind, *(f"{name}={value}" for name, value in event.data.items())
        with self._lock:
            existing = self._counted_facts.get(key)
            if existing is not None:
                existing.data["count"] += 1
            elif len(self._counted_facts) < MAX_FACTS:
                event.data["count"] = 1
                self._counted_facts[key] = event
                self.add_fact(event)
            else:
                self.truncated_count += 1

    def add_finding(self, event: Finding) -> None:
        """Stores the finding. Never blocks."""
        self._findings.append(event)
        if len(self._findings) >= MAX_PENDING_FINDINGS and self._lock.acquire(blocking=False):
            try:
                self._aggregate_findings()
            finally:
                self._lock.release()

    def rotate(self, report: Report) -> Report:
        """Moves the events into the report and cuts them to the wire limits."""
        report.compiles = take_snapshot(self._compiles)
        with self._lock:
            report.facts, self._counted_facts = take_snapshot(self._facts), {}
            self._aggregate_findings()
            groups, self._finding_groups = self._finding_groups, {}
        report.findings = list(groups.values())
        self.truncated_count += cut_to_limits(report)
        return report

    def _aggregate_findings(self) -> None:
        for finding in take_snapshot(self._findings):
            key = finding_key(finding)
            if key not in self._finding_groups and len(self._finding_groups) >= MAX_FINDING_GROUPS:
                self.truncated_count += 1
                key = finding.kind, OVERFLOW_TEXT, ""
            _add_finding(self._finding_groups, key, finding)


def cut_to_limits(report: Report) -> int:
    """Cuts samples to the wire limits and returns how many it dropped. Counts of findings stay
    exact."""
    dropped = max(0, len(report.compiles) - MAX_COMPILES) + max(0, len(report.facts) - MAX_FACTS)
    del report.compiles[MAX_COMPILES:], report.facts[MAX_FACTS:]
    kinds = len({finding.kind for finding in report.findings})
    room = MAX_FINDINGS - kinds
    if len(report.findings) > MAX_FINDINGS:
        excess = report.findings[room:]
        dropped += len(excess)
        overflow = [
            Finding(finding.kind, OVERFLOW_TEXT, "", finding.count, finding.seconds)
            for finding in excess
        ]
        report.findings = merge_findings(report.findings[:room] + overflow)
    return dropped


def finding_key(finding: Finding) -> tuple[str, str, str]:
    """The identity of a finding: findings with equal keys are aggregated."""
    return finding.kind, finding.text, finding.where


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Merges findings with equal keys. Sums the counts; keeps the order of first occurrence."""
    merged: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        _add_finding(merged, finding_key(finding), finding)
    return list(merged.values())


def _add_finding(
    groups: dict[tuple[str, str, str], Finding], key: tuple[str, str, str], finding: Finding
) -> None:
    existing = groups.get(key)
    if existing is None:
        groups[key] = replace(finding, text=key[1], where=key[2])
    else:
        existing.count += finding.count
        existing.seconds += finding.seconds
        existing.values = list(dict.fromkeys(existing.values + finding.values))[:MAX_VALUES]
        existing.distinct = max(existing.distinct, finding.distinct)
        existing.pattern = max(existing.pattern, finding.pattern, key=pattern_rank)


def region_key(region: Region) -> tuple[str, str, str, str, bool]:
    """The identity of a region: regions with equal keys are one series."""
    return region.name, region.bucket, region.mode, region.runtime, region.outermost


def merge_regions(regions: Iterable[Region]) -> list[Region]:
    """Merges regions with equal keys. The given regions may be changed."""
    merged: dict[tuple[str, str, str, str, bool], Region] = {}
    for region in regions:
        existing = merged.setdefault(region_key(region), region)
        if existing is not region:
            _add_region(existing, region)
    return list(merged.values())


def _add_region(into: Region, other: Region) -> None:
    for name in ("calls", "errors", "compiled", "partial", "unknown", "sampled"):
        setattr(into, name, getattr(into, name) + getattr(other, name))
    for cause, count in other.eager_by.items():
        into.eager_by[cause] = into.eager_by.get(cause, 0) + count
    if other.items is not None:
        into.items = (into.items or 0.0) + other.items
    into.latency = _merge_sketches(into.latency, other.latency)
    into.gpu = _merge_sketches(into.gpu, other.gpu)
    into.warmup = _merge_sketches(into.warmup, other.warmup)
    into.stalled = _merge_sketches(into.stalled, other.stalled)


def _merge_sketches(into: Sketch | None, other: Sketch | None) -> Sketch | None:
    if into is None or other is None:
        return into or other
    into.merge(other)
    return into


def merge_reports(first: Report, second: Report) -> tuple[Report, int]:
    """Merges two consecutive windows. Returns the window and the number of samples cut from it.

    The given reports may be changed."""
    merged = Report(
        (first.seq[0], second.seq[1]),
        (min(first.window[0], second.window[0]), max(first.window[1], second.window[1])),
        merge_regions(first.regions + second.regions),
        first.compiles + second.compiles,
        merge_findings(first.findings + second.findings),
        _merge_gauges(first.gauges, second.gauges),
        first.facts + second.facts,
        second.losses,
    )
    return merged, cut_to_limits(merged)


def _merge_gauges(first: Gauges, second: Gauges) -> Gauges:
    """Takes the later value where there is one. For the memory of a device, takes the higher
    peak."""
    merged = Gauges()
    for field in fields(Gauges):
        new_value, old_value = getattr(second, field.name), getattr(first, field.name)
        setattr(
            merged, field.name, old_value if new_value is None or new_value == [] else new_value
        )
    peaks = {device.index: device.peak for device in first.devices}
    for device in merged.devices:
        device.peak = max(filter(None, (device.peak, peaks.get(device.index))), default=device.peak)
    return merged
