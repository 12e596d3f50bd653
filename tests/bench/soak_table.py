"""Summary of a soak's samples: one row per value with its first and last quarter, its slope, and a
growth verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import mean, median
from typing import Any

Series = list[tuple[float, float]]
"""Hours since the start, and the value."""

GROWS = 0.02
"""Slope per hour, as part of the median, that still counts as flat."""
SURE = 3.0
"""A value grows if its slope exceeds this number of standard errors."""
FIGURES = (
    ("rss", "MiB"), ("own", "MiB"), ("first", "MiB"), ("in use", "thousand blocks"), ("descriptors", ""), ("threads", ""),
)  # fmt: skip
"""Values of processes. `own` counts memory shared by a fork once; `first` is the first process
alone."""
FOR_EVER = (
    "model_version", "deployment", "comparison", "healthy_pair", "verdict", "finding", "alert", "audit", "judged", "learned",
    "deployment_mark",
)  # fmt: skip
"""Name prefixes of tables that the dashboard retains indefinitely: they grow with versions, not
with time."""


def slope(series: Series) -> tuple[float, float]:
    """Slope per hour by least squares, and its standard error."""
    if len(series) < 5:
        return math.nan, math.nan
    x_mean, y_mean = mean(x for x, _ in series), mean(y for _, y in series)
    spread = sum((x - x_mean) ** 2 for x, _ in series)
    found = sum((x - x_mean) * (y - y_mean) for x, y in series) / spread
    left = sum((y - y_mean - found * (x - x_mean)) ** 2 for x, y in series)
    return found, math.sqrt(left / (len(series) - 2) / spread)


def lasting(
    samples: list[dict[str, Any]], kind: str, name: str, figure: str, *, settled: float
) -> Series:
    """The series of the process that ran at the end, after its first `settled` hours."""
    seen = [(one["at"], one[kind].get(name) or {}) for one in samples]
    seen = [(at, values) for at, values in seen if values]
    last = seen[-1][1]["pid"] if seen else 0
    return [
        (at / 3600, values.get(figure, 0.0))
        for at, values in seen
        if values["pid"] == last and values["age"] > settled * 3600
    ]


def series_of(
    samples: list[dict[str, Any]], *, settled: float, kept: float
) -> Iterator[tuple[str, Series]]:
    """Every value by name. `settled` and `kept` are the hours after which processes, and tables
    with dropped rows, may be flat."""
    for kind in ("servers", "jobs"):
        for name in sorted({name for one in samples for name in one[kind]}):
            for figure, unit in FIGURES:
                yield (
                    f"{name} {figure} {unit}".strip(),
                    lasting(samples, kind, name, figure, settled=settled),
                )
    late = [one for one in samples if one["at"] / 3600 > kept]
    for name in sorted({name for one in samples for name in one["tables"]}):
        for place, what, part in ((1, "MiB", 1 << 20), (2, "rows", 1), (3, "dead rows", 1)):
            yield (
                f"table {name} {what}",
                [
                    (one["at"] / 3600, one["tables"][name][place] / part)
                    for one in late
                    if name in one["tables"]
                ],
            )
    for name in ("database", "redis", "redis_keys", "spool", "spools", "inbox"):
        yield name, [(one["at"] / 3600, float(one[name])) for one in late]


def quarters(series: Series) -> tuple[float, float]:
    """The medians of the first and the last quarter."""
    part = max(1, len(series) // 4)
    return median(y for _, y in series[:part]), median(y for _, y in series[-part:])


def verdict(series: Series, name: str) -> str:
    """The growth verdict."""
    if len(series) < 8:
        return "too short"
    rise, error = slope(series)
    usual = max(median(y for _, y in series), 1.0)
    first, last = quarters(series)
    if rise - SURE * error <= 0 or rise < GROWS * usual or last <= first:
        return "flat"
    return (
        "retained indefinitely"
        if name.startswith("table ") and name.split()[1].startswith(FOR_EVER)
        else "grows"
    )


def lines(samples: list[dict[str, Any]], *, settled: float, kept: float) -> Iterator[str]:
    """The table."""
    yield f"{'':48} {'first quarter':>14} {'last quarter':>13} {'slope per hour':>22}"
    for name, series in series_of(samples, settled=settled, kept=kept):
        if not series or not any(y for _, y in series):
            continue
        first, last = quarters(series)
        rise, error = slope(series)
        yield f"{name:48} {first:>14.2f} {last:>13.2f} {rise:>11.3f} +- {error:<7.3f} {verdict(series, name)}"


def lives(samples: list[dict[str, Any]], name: str) -> Iterator[str]:
    """Lives of the children of a process: the age of each child, and its MiB after five minutes and
    at its end."""
    seen: dict[int, Series] = {}
    for one in samples:
        for pid, age, size in (one["servers"].get(name) or {}).get("children", ()):
            seen.setdefault(pid, []).append((age / 60, size))
    for series in seen.values():
        settled = next((size for age, size in series if age >= 5), math.nan)
        yield f"child of {name}, {series[-1][0]:.0f} min old: {settled:.1f} MiB after five minutes, {series[-1][1]:.1f} at its end"
