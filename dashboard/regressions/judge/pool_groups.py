"""Pool groups: the groups of instances that are compared with the pool of the last day.

Each instance of the candidate has one mean difference from the pool (`pool_past`), and so has each
host of the baseline before the deployment (`node_past`). Both arms enter the estimate like
instances side by side, with the variance between instances. All of them share the difference
between days, which enters as the variance between days.

Pods that follow each other may run on the same node. An arm therefore counts as many instances as
ran at once.

If instances of the stratum also ran side by side with the baseline, an instance has one difference
over both times: its minutes would otherwise count twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dashboard.regressions.judge.inputs import Stratum
from dashboard.regressions.judge.instance_means import average_differences
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.node_past import average_pasts
from dashboard.regressions.judge.pooled_estimate import (
    Group,
    Repeats,
    Total,
    Unit,
    make_pool_group,
)
from dashboard.regressions.judge.serial_noise import HOUR_MINUTES

POOL = "pool"
"""The baseline's arm if the past has no host with enough calls next to another one."""
LEAST_HOURS = 1.0


def read_pool(cell: MatchedCell, slope: float) -> dict[Unit, Total]:
    """The candidate's sums, by instance, compared with the pool in a cell."""
    return cell.pool.totals(slope) if cell.pool is not None else {}


def group_pool(
    stratum: Stratum, cells: list[MatchedCell], slope: float, least: int, ages: list[int]
) -> Group | None:
    """The group of a stratum whose instances are compared with the pool alone; None without one."""
    totals = [(cell.traffic.baseline, read_pool(cell, slope)) for cell in cells]
    candidate = average_differences(totals, least, ages)
    if not candidate:
        return None
    pasts = [(cell.traffic.baseline, cell.past) for cell in cells]
    hosts = average_pasts(pasts, LEAST_HOURS) or {POOL: 0.0}
    middle = math.fsum(hosts.values()) / len(hosts)
    hours = sum(past.closed for _, past in pasts)
    of_hosts = math.fsum(one[1] for _, past in pasts for one in past.hours.values())
    minutes = sum(cell.pool.minutes for cell in cells if cell.pool is not None)
    compared = sum(one.minutes for _, found in totals for one in found.values())
    repeats = Repeats(
        max(1.0, len(hosts) * hours / of_hosts) if of_hosts else 1.0,
        max(1.0, len(candidate) * minutes / compared),
    )
    # The pool itself is the reference: its hosts only show how much hosts differ.
    baseline: dict[Unit, float] = {host: level - middle for host, level in hosts.items()}
    return make_pool_group(stratum, baseline, candidate, repeats)


def read_arms(
    cells: list[MatchedCell], slope: float, least: int, ages: list[int]
) -> tuple[dict[Unit, float], dict[Unit, float]] | None:
    """The mean differences of both arms of a stratum; None if they did not run side by side.
    Comparisons of the same instances with the pool are included."""
    pooled = [
        (cell.traffic.baseline, read_pool(cell, slope)) for cell in cells if cell.pool is not None
    ]
    at_once = [(cell.traffic.baseline, cell.candidate) for cell in cells]
    cand = average_differences(at_once, least, None if pooled else ages)
    if not cand:
        return None
    base = average_differences(
        [(cell.traffic.baseline, cell.baseline) for cell in cells], least, None
    )
    if not base:
        return None
    return base, average_differences(at_once + pooled, least, ages) if pooled else cand


def share_days(part: Group, cells: list[MatchedCell], slope: float) -> Group:
    """The group of a stratum side by side, with the part of the candidate's minutes that was
    compared with the pool."""
    if all(cell.pool is None for cell in cells):
        return part
    pooled = sum(one.minutes for cell in cells for one in read_pool(cell, slope).values())
    at_once = sum(one.minutes for cell in cells for one in cell.candidate.values())
    return part._replace(day_share=pooled / (pooled + at_once)) if pooled else part


def list_pool_hosts(
    cell: MatchedCell, pool: Mapping[Unit, Total]
) -> list[tuple[str, Unit, float, int]]:
    """The baseline's hosts of a compared pool in a cell: arm, host, log level times minutes, and
    minutes."""
    minutes = sum(one.minutes for one in pool.values())
    if not minutes:
        return []
    level = math.fsum(one.level - one.difference for one in pool.values()) / minutes
    return [
        (
            "baseline",
            host,
            (level + apart / hours) * hours * HOUR_MINUTES,
            int(hours) * HOUR_MINUTES,
        )
        for host, (apart, hours) in cell.past.hours.items()
    ]
