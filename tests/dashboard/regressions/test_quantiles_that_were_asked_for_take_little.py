"""Quantiles are asked for again and again, and few are different: what a process keeps of them has
a bound that it can reach."""

from __future__ import annotations

import tracemalloc

from dashboard.regressions.judge.pooled_estimate import t_quantile


def test_however_many_are_different_less_than_two_mebibytes_are_kept() -> None:
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
