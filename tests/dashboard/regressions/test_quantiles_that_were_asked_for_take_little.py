"""Cache of quantiles of the t distribution: the same values are requested repeatedly, and the size
of the cache has a reachable limit."""

from __future__ import annotations

import tracemalloc

from dashboard.regressions.judge.pooled_estimate import t_quantile


def test_the_cache_takes_less_than_two_mebibytes_for_any_number_of_values() -> None:
    t_quantile.cache_clear()
    tracemalloc.start()
    try:
        for number in range(20_000):
            t_quantile(10 + number, 0.01 / (number + 1))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        t_quantile.cache_clear()
    assert kept < 2 << 20
