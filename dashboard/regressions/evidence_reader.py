"""The one source of a judged change: a row of stored evidence with both values, the change between
them, unit, window and region.

Pages, files, the API, /metrics and messages read it, so that the same verdict has the same numbers
everywhere. A row keeps the shape of the day on which it was written: every key may be missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboard.common import numbers
from dashboard.common.numbers import SPACE
from dashboard.fleet.metrics.eager_causes import parse_causes

STARTS = ("cold_start", "compile_time", "cache")
"""Metrics of what an instance does once, when it starts."""
RATES = ("per hour", "share per hour")
NO_VALUE = "–"


@dataclass(frozen=True)
class Change:
    """One metric of one region, frozen in a verdict. `change`, `low` and `high` are relative and of
    the metric itself: 0.05 is 5 % more.

    `baseline_at_most` and `candidate_at_most`: the value is only the end of an engine's first
    bucket. `minutes` is the window of both values, None where the row does not name it; `newest`:
    of the newest minutes, not of those in which both versions ran. `excluded` are events of
    instances that had just started, baseline and candidate."""

    metric: str
    region: str = ""
    unit: str = ""
    label: str = "NOT ENOUGH DATA"
    reason: str = ""
    judged: bool = True
    drives: bool = False
    hard: bool = True
    muted: bool = False
    baseline: float | None = None
    candidate: float | None = None
    baseline_at_most: bool = False
    candidate_at_most: bool = False
    change: float | None = None
    low: float | None = None
    high: float | None = None
    minutes: int | None = None
    newest: bool = False
    baseline_instances: int | None = None
    candidate_instances: int | None = None
    affected_instances: int | None = None
    excluded: tuple[int, int] | None = None
    causes: Mapping[str, int] = field(default_factory=dict)

    @property
    def bounded(self) -> bool:
        """Whether one of the values is only a bound, so that the change is one as well."""
        return self.baseline_at_most or self.candidate_at_most

    @property
    def difference(self) -> float | None:
        """Candidate minus baseline, where the change of this unit is not relative: shares and
        rates."""
        if self.unit not in ("share", *RATES) or self.baseline is None or self.candidate is None:
            return None
        return self.candidate - self.baseline

    @property
    def baseline_said(self) -> str:
        """19.3 ms, < 300 ms."""
        return _value(self.baseline, self.unit, at_most=self.baseline_at_most)

    @property
    def candidate_said(self) -> str:
        """25.3 ms."""
        return _value(self.candidate, self.unit, at_most=self.candidate_at_most)

    @property
    def change_said(self) -> str:
        """+31 %, −28.1 pts, at least 6.7 times: computed from the two values; a dash where neither
        value nor change is known."""
        if self.baseline_at_most and self.candidate_at_most:
            return NO_VALUE
        if self.baseline is not None and self.candidate is not None:
            said = numbers.difference(self.candidate, self.baseline, self.unit)
        else:
            said = numbers.change(self.change) if self.change is not None else ""
        return f"{'at least ' if said and self.bounded else ''}{said}" or NO_VALUE

    @property
    def range_said(self) -> str:
        """13 to 52 %: the interval of a relative change; of a share in multiples of the baseline;
        empty without one."""
        if self.low is None or self.high is None or self.bounded:
            return ""
        if self.unit == "share":
            return f"{numbers.number(1 + self.low)} to {numbers.number(1 + self.high)}{SPACE}times"
        return numbers.change_range(self.low, self.high) + ("/h" if self.unit in RATES else "")

    @property
    def affected_said(self) -> str:
        """6 of 6 instances: those of the candidate that show it; empty where they are not
        counted."""
        if self.affected_instances is None or not self.candidate_instances:
            return ""
        plural = "" if self.candidate_instances == 1 else "s"
        return f"{self.affected_instances} of {self.candidate_instances}{SPACE}instance{plural}"

    @property
    def window(self) -> str:
        """matched: minutes in which both versions ran; last: the newest minutes; start: once an
        instance; empty: not known."""
        if self.metric in STARTS:
            return "start"
        return "" if self.minutes is None else "last" if self.newest else "matched"

    @property
    def window_said(self) -> str:
        """matched 57 min, last 15 min, at start: of which time both values are; empty where the row
        does not name it."""
        if self.window == "start":
            return "at start"
        return f"{self.window} {numbers.number(self.minutes or 0)}{SPACE}min" if self.window else ""

    @property
    def excluded_said(self) -> str:
        """Excluded, first 20 min of an instance: 3 and 21; empty where nothing is left out."""
        if not self.excluded or not any(self.excluded):
            return ""
        before, after = (numbers.number(count) for count in self.excluded)
        return f"excluded, just started: {before} and {after}"


def read_changes(evidence: Any) -> list[Change]:
    """Every row of stored evidence, in the order of the judge."""
    found = (
        evidence.get("evidence", evidence.get("metrics")) if isinstance(evidence, Mapping) else None
    )
    rows = found if isinstance(found, list) else []
    return [read_change(row) for row in rows if isinstance(row, Mapping)]


def read_change(row: Mapping[str, Any]) -> Change:
    """One row. The judge counts every change so that more is worse; here it is of the metric
    itself."""
    change, low, high = (read_number(row, key) for key in ("change", "low", "high"))
    if row.get("worse") == -1:
        change, low, high = _inverse(change), _inverse(high), _inverse(low)
    metric, window = read_text(row, "metric"), read_count(row, "window_minutes")
    return Change(
        metric=metric,
        region=read_text(row, "region"),
        unit=read_text(row, "unit"),
        label=(read_text(row, "label") or "NOT ENOUGH DATA").replace("_", " "),
        reason=read_text(row, "reason"),
        judged=bool(row.get("judged", True)),
        drives=row.get("drives") is True,
        hard=bool(row.get("hard", True)),
        muted=bool(row.get("muted")),
        baseline=read_number(row, "baseline"),
        candidate=read_number(row, "candidate"),
        baseline_at_most=row.get("baseline_at_most") is True,
        candidate_at_most=row.get("candidate_at_most") is True,
        change=change,
        low=low,
        high=high,
        minutes=None if metric in STARTS else window or read_count(row, "matched_minutes"),
        newest=bool(window),
        baseline_instances=read_count(row, "baseline_instances", "instances_baseline"),
        candidate_instances=read_count(row, "candidate_instances", "instances_candidate"),
        affected_instances=read_count(row, "affected_instances"),
        excluded=_excluded(row),
        causes=parse_causes(row.get("causes")),
    )


def read_number(row: Mapping[str, Any], *keys: str) -> float | None:
    """The finite number under the first of these keys that has one."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


def read_count(row: Mapping[str, Any], *keys: str) -> int | None:
    """The same as a whole number."""
    value = read_number(row, *keys)
    return None if value is None else int(value)


def read_text(row: Mapping[str, Any], key: str) -> str:
    """The text under a key; empty for anything else."""
    value = row.get(key)
    return value if isinstance(value, str) else ""


def _excluded(row: Mapping[str, Any]) -> tuple[int, int] | None:
    before, after = read_count(row, "excluded_baseline"), read_count(row, "excluded_candidate")
    return None if before is None or after is None else (before, after)


def _inverse(ratio: float | None) -> float | None:
    return None if ratio is None or ratio <= -1 else 1 / (1 + ratio) - 1


def _value(value: float | None, unit: str, *, at_most: bool) -> str:
    if value is None:
        return NO_VALUE
    return numbers.bound(value) if at_most and unit == "s" else numbers.level(value, unit)
