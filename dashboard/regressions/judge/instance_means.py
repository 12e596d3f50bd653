"""Instance means: one mean difference per instance, over its cells."""

from __future__ import annotations

from dashboard.regressions.judge.pooled_estimate import Total, Unit


def average_differences(
    cells: list[tuple[int, dict[Unit, Total]]], least: int, ages: list[int] | None
) -> dict[Unit, float]:
    """The mean difference per instance with at least `least` matched minutes. Buckets are weighted
    by the baseline's traffic."""
    if len(cells) == 1:
        found = {
            unit: total.difference / total.minutes
            for unit, total in cells[0][1].items()
            if total.minutes >= least
        }
        if ages is not None:
            ages += [total.minutes for total in cells[0][1].values() if total.minutes >= least]
        return found
    sums: dict[Unit, list[float]] = {}
    for weight, totals in cells:
        for unit, total in totals.items():
            entry = sums.get(unit)
            if entry is None:
                entry = sums[unit] = [0.0, 0.0, 0.0]
            entry[0] += weight * total.difference
            entry[1] += weight * total.minutes
            if total.minutes > entry[2]:
                entry[2] = total.minutes
    if ages is not None:
        ages += [int(entry[2]) for entry in sums.values() if entry[2] >= least]
    return {unit: entry[0] / entry[1] for unit, entry in sums.items() if entry[2] >= least}
