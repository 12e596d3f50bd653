"""A window too large for a request, told less finely until it fits: fewer samples, fewer names, and every count as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from compilewatch.recording.aggregate import MORE, findings_merge, region_key, regions_merge
from compilewatch.recording.region_spec import OTHER
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Finding, Region, Report

_BLURRED = (("bucket",), ("bucket", "name"), ("bucket", "name", "mode", "runtime"))
"""What regions with few calls give up, one after another: they join those called `other`."""


def fitted(report: Report, limit: int) -> tuple[bytes, int]:
    """The report in at most `limit` bytes, and how many samples and regions it lost their own entry for it; the report is changed."""
    body, lost = dumps(report), 0
    while len(body) > limit:
        given_up = _coarsen(report)
        if not given_up:
            break
        lost += given_up
        body = dumps(report)
    return body, lost


def _coarsen(report: Report) -> int:
    """Halves the largest part that can be halved, and answers how many entries it lost; 0 when nothing is left to give."""
    for name in sorted(_PARTS, key=lambda name: _size(report, name), reverse=True):
        given_up = _PARTS[name](report)
        if given_up:
            return given_up
    return 0


def _size(report: Report, part: str) -> int:
    return len(dumps(Report(report.seq, report.window, **{part: getattr(report, part)})))


def _compiles_halve(report: Report) -> int:
    before = len(report.compiles)
    del report.compiles[before // 2 :]
    return before - len(report.compiles)


def _facts_halve(report: Report) -> int:
    before = len(report.facts)
    del report.facts[before // 2 :]
    return before - len(report.facts)


def _findings_halve(report: Report) -> int:
    fine = [finding for finding in report.findings if (finding.text, finding.where) != (MORE, "")]
    summed = [finding for finding in report.findings if (finding.text, finding.where) == (MORE, "")]
    rest = fine[len(fine) // 2 :]
    more = [Finding(finding.kind, MORE, "", finding.count, finding.seconds) for finding in rest]
    report.findings = findings_merge([*fine[: len(fine) // 2], *summed, *more])
    return len(rest)


def _regions_halve(report: Report) -> int:
    for names in _BLURRED:
        alike = Counter(region_key(_blurred(region, names)) for region in report.regions)
        fine = [region for region in report.regions if _joins(region, names, alike)]
        if fine:
            few = {
                id(region)
                for region in sorted(fine, key=lambda region: region.calls)[: (len(fine) + 1) // 2]
            }
            report.regions = regions_merge(
                _blurred(region, names) if id(region) in few else region
                for region in report.regions
            )
            return len(few)
    return 0


def _joins(
    region: Region, names: tuple[str, ...], alike: Counter[tuple[str, str, str, str, bool]]
) -> bool:
    """Whether it would be one with another region if both gave up these names."""
    key = region_key(_blurred(region, names))
    return key != region_key(region) and alike[key] > 1


def _blurred(region: Region, names: tuple[str, ...]) -> Region:
    blurred = replace(region)
    for name in names:
        if getattr(region, name):
            setattr(blurred, name, OTHER)
    return blurred


_PARTS: dict[str, Callable[[Report], int]] = {
    "compiles": _compiles_halve,
    "facts": _facts_halve,
    "findings": _findings_halve,
    "regions": _regions_halve,
}
