"""Prior freedom: the degrees of freedom of the prior variance, from how much the variances of
healthy pairs differ beyond chance.

Algorithm: a sample variance with d degrees of freedom, of a variance that is itself drawn from a
scaled inverse chi-squared distribution with d0, has a scaled F distribution. The variance of its
log is trigamma(d/2) + trigamma(d0/2), so d0 follows from the observed variance of the logs.

Source: Smyth, Linear models and empirical Bayes methods for assessing differential expression,
Stat. Appl. Genet. Mol. Biol. 3(1), 2004 (`fitFDist` of limma).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import digamma, polygamma

MIN_PRIOR_DF, MAX_PRIOR_DF = 4, 60
"""Bounds of the learned degrees of freedom."""


def fit_prior_df(variances: Sequence[tuple[float, float]]) -> int:
    """The degrees of freedom of a scaled F distribution of sample variances, each with its degrees
    of freedom: by the variance of their logs. Within MIN_PRIOR_DF and MAX_PRIOR_DF."""
    logs = [math.log(v) - float(digamma(df / 2)) + math.log(df / 2) for v, df in variances]
    mean = math.fsum(logs) / len(logs)
    spread = math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
    # With few pairs the estimate is uncertain: one standard error is added, so that certainty is
    # learned slowly.
    spread *= 1.0 + math.sqrt(2.0 / (len(logs) - 1))
    beyond = spread - math.fsum(float(polygamma(1, df / 2)) for _, df in variances) / len(logs)
    low, high = MIN_PRIOR_DF, MAX_PRIOR_DF
    while low < high:
        middle = (low + high + 1) // 2
        if float(polygamma(1, middle / 2)) >= beyond:
            low = middle
        else:
            high = middle - 1
    return low
