"""Recovery check: compares the p50 of 5 min bins before a deployment and after its rollback; pure
functions.

A single low bin among six is not a recovery. Two consecutive bins are compared with all bins before
the deployment, on the log scale. The upper end of a one-sided 95% interval of the difference must
lie within RECOVERY_TOLERANCE_RATIO. The bins before the deployment show the normal variation of a
bin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev
from typing import Literal

from scipy.special import stdtrit

RECOVERY_TOLERANCE_RATIO = 0.05
"""Maximum increase of the p50 of the old version over its earlier p50; the page draws this band."""
CONSECUTIVE_BINS = 2
MIN_BINS_BEFORE = 3
"""Minimum number of bins before the deployment for an estimate of their variation."""
CONFIDENCE_LEVEL = 0.95

Bins = Sequence[tuple[int, float]]
"""Number and p50 of each bin with calls, oldest first."""
RecoveryState = Literal["back", "not_back", "unknown"]


@dataclass(frozen=True)
class RecoveryResult:
    """The answer, with the p50 before and after in seconds; `after` covers the bins behind the
    answer."""

    answer: RecoveryState
    before: float | None = None
    after: float | None = None


def check_recovery(before: Bins, after: Bins, *, late: bool) -> RecoveryResult:
    """ "back" if two consecutive bins are back at the earlier level; "not_back" if `late` and all
    bins together are significantly above it."""
    earlier = [math.log(value) for _, value in before]
    if len(earlier) < MIN_BINS_BEFORE or not after:
        return RecoveryResult(
            "unknown", _level(earlier) if len(earlier) >= MIN_BINS_BEFORE else None
        )
    for (first, one), (second, two) in pairwise(after):
        logs = [math.log(one), math.log(two)]
        if second == first + 1 and _log_difference(earlier, logs) + _margin(
            earlier, CONSECUTIVE_BINS
        ) <= math.log1p(RECOVERY_TOLERANCE_RATIO):
            return RecoveryResult("back", _level(earlier), _level(logs))
    later = [math.log(value) for _, value in after]
    sure = _log_difference(earlier, later) - _margin(earlier, len(later)) > 0.0 and _log_difference(
        earlier, later
    ) > math.log1p(RECOVERY_TOLERANCE_RATIO)
    return RecoveryResult(
        "not_back" if late and sure else "unknown", _level(earlier), _level(later)
    )


def _log_difference(earlier: Sequence[float], later: Sequence[float]) -> float:
    return fmean(later) - fmean(earlier)


def _margin(earlier: Sequence[float], bins: int) -> float:
    """Maximum difference by chance between the mean of `bins` bins and the mean of the earlier
    bins."""
    error = stdev(earlier) * math.sqrt(1.0 / bins + 1.0 / len(earlier))
    return float(stdtrit(len(earlier) - 1, CONFIDENCE_LEVEL)) * error


def _level(logs: Sequence[float]) -> float | None:
    return math.exp(fmean(logs)) if logs else None
