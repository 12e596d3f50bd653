"""Node groups: the groups of a level's strata, less what the past of the nodes explains.

See `node_past` for the covariate and `pooled_estimate` for the estimate. An instance whose node has
a known past keeps `past_share` of the variance. Without it, the rest of the variance is shared by
the instances on the node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dashboard.regressions.judge.inputs import Stratum
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.node_past import average_pasts, fit_slope
from dashboard.regressions.judge.pooled_estimate import Group, Place, Unit, group, place_group
from dashboard.regressions.judge.serial_noise import HOUR_MINUTES
from dashboard.regressions.judge.settings import RatioMetric, Settings

Levels = dict[Unit, float]
Strata = Mapping[Stratum, list[MatchedCell]]


def group_nodes(
    arms: Mapping[Stratum, tuple[Levels, Levels]],
    strata: Strata,
    metric: RatioMetric,
    settings: Settings,
) -> list[Group]:
    """The group of each stratum. `arms` are the mean differences of the baseline's and the
    candidate's instances."""
    known = {stratum: read_covariates(strata[stratum], settings.past_minutes) for stratum in arms}
    slope = 0.0
    if any(known.values()):
        slope = fit_slope(
            ((values, known[stratum]) for stratum, both in arms.items() for values in both),
            settings.past_slope,
            metric.prior_variance[-1][1],
        )
    return [
        make_group(stratum, base, cand, known[stratum], slope, strata[stratum], metric)
        for stratum, (base, cand) in arms.items()
    ]


def read_covariates(cells: list[MatchedCell], past_minutes: int) -> Levels:
    """The difference of each unit's node before the deployment, if it is known."""
    if not any(cell.past.hours for cell in cells):
        return {}
    nodes = average_pasts(
        ((cell.traffic.baseline, cell.past) for cell in cells), past_minutes / HOUR_MINUTES
    )
    return {
        unit: nodes[node] for cell in cells for unit, node in cell.nodes.items() if node in nodes
    }


def make_group(
    stratum: Stratum,
    base: Levels,
    cand: Levels,
    known: Mapping[Unit, float],
    slope: float,
    cells: list[MatchedCell],
    metric: RatioMetric,
) -> Group:
    """The group of one stratum. A unit without a covariate keeps its value."""
    of_base = [known[unit] for unit in base if unit in known]
    if of_base:
        middle = math.fsum(of_base) / len(of_base)
        part = {unit: slope * (x - middle) for unit, x in known.items()}
        base = {unit: value - part.get(unit, 0.0) for unit, value in base.items()}
        cand = {unit: value - part.get(unit, 0.0) for unit, value in cand.items()}
    else:
        part = {}
    if not part and not any(cell.shares_nodes for cell in cells):
        return group(stratum, base, cand)
    nodes = {unit: node for cell in cells for unit, node in cell.nodes.items()}
    own = metric.past_share
    places = {
        unit: Place(nodes.get(unit) or f"alone {unit}", own, 0.0 if unit in part else 1.0 - own)
        for unit in (*base, *cand)
    }
    return place_group(stratum, base, cand, places)
