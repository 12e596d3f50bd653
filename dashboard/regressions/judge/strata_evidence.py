"""Strata evidence: the change within each compared stratum, and whether the strata agree."""

from __future__ import annotations

import math

from dashboard.regressions.judge.cohorts import CohortKind, name_dimensions
from dashboard.regressions.judge.inputs import Stratum, stratum_name
from dashboard.regressions.judge.pooled_estimate import (
    Estimate,
    Group,
    log_to_change,
    pool_change,
    t_quantile,
)
from dashboard.regressions.judge.result import StratumChange

DIFFERENCE_ALPHA = 0.05
"""Chance of naming strata as different that do not differ, over all pairs of strata."""
EXPLAINED_SHARE = 0.75
"""The part of the variance between strata that a dimension must explain to be named for it."""


def list_strata(estimate: Estimate | None, margin: float) -> tuple[StratumChange, ...]:
    """The change within each compared stratum. `margin` is half the width of the interval of the
    whole; it sets the confidence of the strata's intervals."""
    if estimate is None:
        return ()
    width = margin / estimate.error if estimate.error else 0.0
    changes = []
    for group in choose_layout_groups(estimate):
        part = width * math.sqrt(estimate.variance * group.k)
        changes.append(
            StratumChange(
                stratum_name(group.stratum),
                log_to_change(group.delta),
                len(group.baseline),
                len(group.candidate),
                log_to_change(group.delta - part),
                log_to_change(group.delta + part),
            )
        )
    return tuple(sorted(changes, key=lambda change: change.stratum))


def choose_layout_groups(estimate: Estimate) -> list[Group]:
    """One group per stratum, of the layout with the most information. An instance that was compared
    in both layouts is counted once."""
    found: dict[Stratum, Group] = {}
    for group in estimate.groups:
        known = found.get(group.stratum)
        if known is None or group.k < known.k:
            found[group.stratum] = group
    return list(found.values())


def strata_differ(estimate: Estimate, effect: float) -> bool:
    """True if the changes of two strata differ by more than their errors, or if one reaches the
    smallest effect and is at least twice another that does not reach it."""
    groups = choose_layout_groups(estimate)
    if len(groups) < 2:
        return False
    sign = math.copysign(1.0, estimate.delta)
    groups.sort(key=lambda group: sign * group.delta)
    least, most = groups[0], groups[-1]
    small, large = sign * least.delta, sign * most.delta
    if small < effect <= large and large >= 2.0 * small:
        return True
    pairs = len(groups) * (len(groups) - 1) // 2
    error = math.sqrt(estimate.variance * (least.k + most.k))
    return large - small > t_quantile(estimate.df, DIFFERENCE_ALPHA / (2 * pairs)) * error


def list_dimension_changes(estimate: Estimate) -> tuple[tuple[CohortKind, str, float], ...]:
    """The change of every value of the dimension that explains the differences between strata,
    largest first; empty if no dimension explains them, or two do equally."""
    groups = choose_layout_groups(estimate)
    whole = sum(group.delta / group.k for group in groups) / sum(1.0 / group.k for group in groups)
    total = math.fsum((group.delta - whole) ** 2 / group.k for group in groups)
    by_value: dict[CohortKind, dict[str, list[Group]]] = {}
    for group in groups:
        for kind, name in name_dimensions(group.stratum):
            by_value.setdefault(kind, {}).setdefault(name, []).append(group)
    found: list[tuple[float, CohortKind, dict[str, float]]] = []
    for kind, values in by_value.items():
        if len(values) < 2:
            continue
        means = {name: pool_change(parts) for name, parts in values.items()}
        explained = math.fsum(
            (means[name] - whole) ** 2 / part.k for name, parts in values.items() for part in parts
        )
        found.append((explained, kind, means))
    found.sort(key=lambda item: -item[0])
    if not found or found[0][0] < EXPLAINED_SHARE * total:
        return ()
    if len(found) > 1 and found[1][0] >= EXPLAINED_SHARE * total:
        return ()
    _, kind, means = found[0]
    ordered = sorted(means.items(), key=lambda item: (-item[1], item[0]))
    return tuple((kind, name, log_to_change(change)) for name, change in ordered)


def count_affected(estimate: Estimate, effect: float) -> int:
    """Number of the candidate's instances at least the smallest effect above the baseline of their
    stratum."""
    return sum(
        value - group.baseline_mean >= effect
        for group in choose_layout_groups(estimate)
        for value in group.candidate.values()
    )
