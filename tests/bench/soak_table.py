"""What the samples of a soak say at its end: one row a figure, its first quarter beside its last,
its slope, and whether it grows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import mean, median
from typing import Any

Series = list[tuple[float, float]]
"""Hours since the begin, and the figure."""

GROWS = 0.02
"""What a figure may rise in an hour, as part of its median, and still be called flat."""
SURE = 3.0
"""So many standard errors of its slope lie between a figure that grows and one that does not."""
FIGURES = (
    ("rss", "MiB"), ("own", "MiB"), ("first", "MiB"), ("in use", "thousand blocks"), ("descriptors", ""), ("threads", ""),
)  # fmt: skip
"""Of processes. `own` is what they made themselves, what a fork shares counted once; `first` is the
first process alone."""
FOR_EVER = (
    "model_version", "deployment", "comparison", "healthy_pair", "verdict", "finding", "alert", "audit", "judged", "learned",
    "deployment_mark",
)  # fmt: skip
"""How the names of tables begin in which the dashboard keeps what it found for ever: they grow with
versions, not with time."""


def slope(series: Series) -> tuple[float, float]:
    """By least squares, an hour, and its standard error."""
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
    """Of the process that was there at the end, once it had run for so many hours."""
    seen = [(one["at"], one[kind].get(name) or {}) for one in samples]
    seen = [(at, said) for at, said in seen if said]
    last = seen[-1][1]["pid"] if seen else 0
    return [
        (at / 3600, said.get(figure, 0.0))
        for at, said in seen
        if said["pid"] == last and said["age"] > settled * 3600
    ]


def series_of(
    samples: list[dict[str, Any]], *, settled: float, kept: float
) -> Iterator[tuple[str, Series]]:
    """Every figure by name; `settled` and `kept` are the hours after which processes, and tables
    whose rows are dropped, may be flat."""
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
    """The medians of its first quarter and of its last."""
    part = max(1, len(series) // 4)
    return median(y for _, y in series[:part]), median(y for _, y in series[-part:])


def verdict(series: Series, name: str) -> str:
    """In a word."""
    if len(series) < 8:
        return "too short"
    rise, error = slope(series)
    usual = max(median(y for _, y in series), 1.0)
    first, last = quarters(series)
    if rise - SURE * error <= 0 or rise < GROWS * usual or last <= first:
        return "flat"
    return (
        "kept for ever"
        if name.startswith("table ") and name.split()[1].startswith(FOR_EVER)
        else "grows"
    )


def lines(samples: list[dict[str, Any]], *, settled: float, kept: float) -> Iterator[str]:
    """The table."""
    yield f"{'':48} {'first quarter':>14} {'last quarter':>13} {'slope an hour':>22}"
    for name, series in series_of(samples, settled=settled, kept=kept):
        if not series or not any(y for _, y in series):
            continue
        first, last = quarters(series)
        rise, error = slope(series)
        yield f"{name:48} {first:>14.2f} {last:>13.2f} {rise:>11.3f} +- {error:<7.3f} {verdict(series, name)}"


def lives(samples: list[dict[str, Any]], name: str) -> Iterator[str]:
    """Of a process that replaces its child: how old each child came to be, and its MiB after five
    minutes and at its end."""
    seen: dict[int, Series] = {}
    for one in samples:
        for pid, age, size in (one["servers"].get(name) or {}).get("children", ()):
            seen.setdefault(pid, []).append((age / 60, size))
    for series in seen.values():
        settled = next((size for age, size in series if age >= 5), math.nan)
        yield f"{name}'s child of {series[-1][0]:.0f} min: {settled:.1f} MiB after five minutes, {series[-1][1]:.1f} at its end"
