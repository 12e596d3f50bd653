"""The judge's evidence as rows of a table, each with its place in the interval plot; keys that are missing stay unsaid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dashboard.fleet.figures.eager import causes_said
from dashboard.ui import words

Raw = Mapping[str, Any]
Tone = Literal["rollback", "watch", "quiet", "open"]

TITLES = {
    "p50": ("p50", "wall time"),
    "gpu_p50": ("p50", "GPU time"),
    "p95": ("p95", "wall time"),
    "gpu_p95": ("p95", "GPU time"),
    "p99": ("p99", "wall time"),
    "gpu_p99": ("p99", "GPU time"),
    "eager": ("Eager calls", "share of calls"),
    "errors": ("Errors", "share of calls"),
    "stalled": ("Stalled calls", "share of calls"),
    "stalled_time": ("Stalled time", "share of call time"),
    "recompiles": ("Recompiles", "per hour and instance"),
    "leak": ("GPU memory growth", "per hour, median slope"),
    "throughput": ("Throughput", "items/s"),
    "compile_time": ("Compile time", "per instance start"),
    "cold_start": ("Cold start", "to first steady call"),
    "gpu_memory": ("Peak GPU memory", "per instance"),
    "host_memory": ("Host memory", "per instance"),
    "cache": ("Cache misses", "share of compile seconds"),
}
TREND_KEYS = {"gpu_p50": "p50", "gpu_p95": "p95", "gpu_p99": "p99", "compile_time": "compile"}
NOT_JUDGED = "NOT JUDGED"
MUTED = "MUTED"
SILENT = {
    "one_sided": "one version does not report it",
    "too_few_calls": "too few calls a minute",
    "bucket_too_wide": "a bucket of the engine is wider than the difference",
}


@dataclass(frozen=True)
class Interval:
    """A change on the log scale, right is worse; `band` is the smallest change that matters, on both sides."""

    centre: float
    low: float
    high: float
    band: float
    tone: Tone


@dataclass(frozen=True)
class EvidenceRow:
    """One metric of one region in words. Without an interval, `note` stands in the plot instead; `follows` names its cause."""

    key: str
    title: str
    detail: str
    baseline: str
    candidate: str
    change: str
    spread: str
    label: str
    judged: bool
    drives: bool = False
    caution: bool = False
    matched: str = ""
    agreeing: str = ""
    since: int | None = None
    effect: str = ""
    interval: Interval | None = None
    note: str = ""
    follows: str = ""
    causes: str = ""
    """Counts by cause, in words."""
    tone: Tone = "quiet"
    unresolved: bool = False
    """Not compared, for a bucket in which an engine counts is wider than the difference."""

    @property
    def trend(self) -> str:
        """The key of the trend chart that shows the same metric."""
        return TREND_KEYS.get(self.key, self.key)

    @property
    def red(self) -> bool:
        """Red is for what drives a ROLL BACK, and nothing else."""
        return self.drives and not self.caution and self.label == "REGRESSED"


def evidence_rows(evidence: Raw, *, verdict: str = "") -> list[EvidenceRow]:
    """Every row of the evidence: those that drive the verdict first, the judge's order otherwise."""
    raw = [row for row in evidence.get("evidence") or [] if isinstance(row, Mapping) and row.get("metric")]
    several = len({row["region"] for row in raw if row.get("region")}) > 1
    rows = [_row(row, several, verdict) for row in raw]
    return sorted(rows, key=lambda row: (not row.judged, not row.drives))


def _row(raw: Raw, several_regions: bool, verdict: str) -> EvidenceRow:
    key = str(raw["metric"])
    title, detail = TITLES.get(key, (key.replace("_", " "), str(raw.get("unit") or "")))
    if several_regions and raw.get("region"):
        detail = f"{detail}, {raw.get('region', '')}"
    unit = str(raw.get("unit") or "")
    label = str(raw.get("label") or "NOT ENOUGH DATA").replace("_", " ")
    judged = bool(raw.get("judged", True))
    drives = bool(raw.get("drives")) and judged
    caution = label == "REGRESSED" and not (drives and raw.get("hard", True) and verdict != "watch")
    tone: Tone = "open" if label == "NOT ENOUGH DATA" or not judged else "quiet"
    if label == "REGRESSED" and judged:
        tone = "watch" if caution else "rollback"
    baseline, candidate, cause = number(raw, "baseline"), number(raw, "candidate"), str(raw.get("explained_by") or "")
    interval = _interval(raw, tone) if unit != "share" else None
    return EvidenceRow(
        key=key,
        title=title,
        detail=detail,
        baseline=level(baseline, unit),
        candidate=level(candidate, unit),
        change=_change(raw, unit, baseline, candidate),
        spread=_spread(raw, unit, interval),
        label=label if judged else MUTED if raw.get("muted") else NOT_JUDGED,
        judged=judged,
        drives=drives,
        caution=caution,
        matched=words.number(raw["matched_minutes"]) if isinstance(raw.get("matched_minutes"), int) else "",
        agreeing=_agreeing(raw, interval),
        since=raw.get("since") if label == "REGRESSED" and isinstance(raw.get("since"), int) else None,
        effect=_effect(raw, unit),
        interval=interval,
        note="" if interval else _note(raw, unit, baseline, candidate),
        follows=TITLES.get(cause, (cause.replace("_", " "), ""))[0] if cause else "",
        causes=causes_said(raw.get("causes")),
        tone=tone,
        unresolved=not several_regions and raw.get("reason") == "bucket_too_wide",
    )


def number(raw: Raw, key: str) -> float | None:
    """The finite number under a key, None for anything else."""
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def level(value: float | None, unit: str) -> str:
    """A level in its unit."""
    if value is None:
        return "–"
    if unit == "s":
        return words.duration(value)
    if unit == "share":
        return words.percent(value)
    if unit in ("B", "bytes"):
        return words.size(value)
    if unit == "per hour":
        return f"{words.number(value)}{words.SPACE}/h"
    if unit == "share per hour":
        return f"{words.percent(value)}/h"
    return f"{words.number(value)}{words.SPACE}{unit}".rstrip()


def _interval(raw: Raw, tone: Tone) -> Interval | None:
    centre, low, high = (number(raw, key) for key in ("change", "low", "high"))
    if centre is None or low is None or high is None or min(centre, low, high) <= -1:
        return None
    return Interval(math.log1p(centre), math.log1p(low), math.log1p(high), math.log1p(number(raw, "smallest_effect") or 0.0), tone)


def _shown(ratio: float, raw: Raw) -> float:
    """A change in the metric's own direction; the judge counts every change so that more is worse."""
    return ratio if raw.get("worse", 1) != -1 else 1 / (1 + ratio) - 1


def _change(raw: Raw, unit: str, baseline: float | None, candidate: float | None) -> str:
    ratio = number(raw, "change")
    if unit == "share":
        return words.points(candidate - baseline) if baseline is not None and candidate is not None else "–"
    if ratio is not None and ratio > -1:
        return words.change(_shown(ratio, raw))
    if unit == "per hour" and baseline is not None and candidate is not None:
        return f"{'+' if candidate > baseline else ''}{level(candidate - baseline, unit)}"
    return "–"


def _spread(raw: Raw, unit: str, interval: Interval | None) -> str:
    if interval:
        ends = sorted(_shown(math.expm1(value), raw) for value in (interval.low, interval.high))
        return f"{_bare(ends[0])} to {words.change(ends[1]).removeprefix('+')}"
    low, high = number(raw, "low"), number(raw, "high")
    if unit == "share" and low is not None and high is not None:
        return f"{words.number(1 + low)} to {words.number(1 + high)} times"
    affected, instances = raw.get("affected_instances"), raw.get("candidate_instances")
    return (
        f"{affected} of {words.plural(instances, 'instance')}"
        if isinstance(affected, int) and isinstance(instances, int) and instances
        else ""
    )


def _bare(ratio: float) -> str:
    return words.change(ratio).removeprefix("+").removesuffix(f"{words.SPACE}%")


def _agreeing(raw: Raw, interval: Interval | None) -> str:
    strata, agreeing = raw.get("strata"), raw.get("strata_agreeing")
    if interval and isinstance(strata, Sequence) and strata and isinstance(agreeing, int):
        return f"{agreeing} of {len(strata)}"
    return ""


def _effect(raw: Raw, unit: str) -> str:
    effect = number(raw, "smallest_effect")
    if effect is None:
        return ""
    times, points = number(raw, "times"), number(raw, "points")
    if unit == "share" and times is not None and points is not None and number(raw, "change") is not None:
        return f"matters from {words.number(times)} times and {words.points(points)}"
    if unit == "share":
        of = "compile seconds" if raw.get("metric") == "cache" else "an instance’s calls"
        return f"counts from {words.percent(effect)} of {of}"
    if unit == "per hour":
        return f"counts from {words.number(effect)} an hour on an instance"
    return f"matters from {words.percent(effect)}"


def _note(raw: Raw, unit: str, baseline: float | None, candidate: float | None) -> str:
    if baseline is None or candidate is None:
        return SILENT.get(str(raw.get("reason") or ""), "nothing to compare yet")
    return f"{level(baseline, unit)} to {level(candidate, unit)}"
