"""Whether a version is back at an earlier level, from the p50 of bins of five minutes before and
after a roll back; pure.

One bin of six that happens to be low is no recovery. Two bins in a row are compared with all bins
before the deployment, on the log scale, and the upper end of a one-sided 95 % interval of their
difference has to lie within `NEAR`. The bins before show how much a bin varies by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev
from typing import Literal

from scipy.special import stdtrit

RECOVERY_TOLERANCE_RATIO = 0.05
"""As far above its earlier p50 the old version may be; the band that the page draws."""
CONSECUTIVE_BINS = 2
MIN_BINS_BEFORE = 3
"""Bins before, from which it is known how much they vary."""
CONFIDENCE_LEVEL = 0.95

Bins = Sequence[tuple[int, float]]
"""Number and p50 of each bin with calls, oldest first."""
RecoveryState = Literal["back", "not_back", "unknown"]


@dataclass(frozen=True)
class RecoveryResult:
    """The answer, with the p50 before and after in seconds; `after` is of the bins that gave it."""

    answer: RecoveryState
    before: float | None = None
    after: float | None = None


def check_recovery(before: Bins, after: Bins, *, late: bool) -> RecoveryResult:
    """Whether two bins in a row are back; once it is `late`, whether all of them are surely above
    the earlier level."""
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
    """How far the means of so many bins and of the earlier ones may lie apart by chance."""
    error = stdev(earlier) * math.sqrt(1.0 / bins + 1.0 / len(earlier))
    return float(stdtrit(len(earlier) - 1, CONFIDENCE_LEVEL)) * error


def _level(logs: Sequence[float]) -> float | None:
    return math.exp(fmean(logs)) if logs else None
