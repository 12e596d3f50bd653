"""Lossy size reduction: coarsens a report until its JSON fits into one request.

Samples and region labels are dropped; every count stays exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from compilewatch.recording.aggregate import (
    OVERFLOW_TEXT,
    merge_findings,
    merge_regions,
    region_key,
)
from compilewatch.recording.region_spec import OTHER
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Finding, Region, Report

_LABEL_STEPS = (("bucket",), ("bucket", "name"), ("bucket", "name", "mode", "runtime"))
"""Labels that regions with few calls lose, step by step; such regions merge into the region
`other`.
"""


def fit_report(report: Report, limit: int) -> tuple[bytes, int]:
    """Reduces the report in place to at most `limit` bytes.

    Returns the JSON, and how many samples and regions lost their own entry.
    """
    body, lost = dumps(report), 0
    while len(body) > limit:
        dropped = _coarsen(report)
        if not dropped:
            break
        lost += dropped
        body = dumps(report)
    return body, lost


def _coarsen(report: Report) -> int:
    """Halves the largest part that can shrink.

    Returns the number of entries lost; 0 if nothing can shrink.
    """
    for name in sorted(_PARTS, key=lambda name: _part_size(report, name), reverse=True):
        dropped = _PARTS[name](report)
        if dropped:
            return dropped
    return 0


def _part_size(report: Report, part: str) -> int:
    return len(dumps(Report(report.seq, report.window, **{part: getattr(report, part)})))


def _halve_compiles(report: Report) -> int:
    before = len(report.compiles)
    del report.compiles[before // 2 :]
    return before - len(report.compiles)


def _halve_facts(report: Report) -> int:
    before = len(report.facts)
    del report.facts[before // 2 :]
    return before - len(report.facts)


def _halve_findings(report: Report) -> int:
    fine = [
        finding
        for finding in report.findings
        if (finding.text, finding.where) != (OVERFLOW_TEXT, "")
    ]
    summed = [
        finding
        for finding in report.findings
        if (finding.text, finding.where) == (OVERFLOW_TEXT, "")
    ]
    removed = fine[len(fine) // 2 :]
    summaries = [
        Finding(finding.kind, OVERFLOW_TEXT, "", finding.count, finding.seconds)
        for finding in removed
    ]
    report.findings = merge_findings([*fine[: len(fine) // 2], *summed, *summaries])
    return len(removed)


def _halve_regions(report: Report) -> int:
    for names in _LABEL_STEPS:
        counts = Counter(region_key(_blur(region, names)) for region in report.regions)
        fine = [region for region in report.regions if _would_merge(region, names, counts)]
        if fine:
            chosen = {
                id(region)
                for region in sorted(fine, key=lambda region: region.calls)[: (len(fine) + 1) // 2]
            }
            report.regions = merge_regions(
                _blur(region, names) if id(region) in chosen else region
                for region in report.regions
            )
            return len(chosen)
    return 0


def _would_merge(
    region: Region, names: tuple[str, ...], counts: Counter[tuple[str, str, str, str, bool]]
) -> bool:
    """Returns whether the region would merge with another one if both lost these labels."""
    key = region_key(_blur(region, names))
    return key != region_key(region) and counts[key] > 1


def _blur(region: Region, names: tuple[str, ...]) -> Region:
    coarse = replace(region)
    for name in names:
        if getattr(region, name):
            setattr(coarse, name, OTHER)
    return coarse


_PARTS: dict[str, Callable[[Report], int]] = {
    "compiles": _halve_compiles,
    "facts": _halve_facts,
    "findings": _halve_findings,
    "regions": _halve_regions,
}
