"""Driving charts: what drives the verdict is large, then other regressions, then the usual order."""

from __future__ import annotations

from dashboard.ui.charts.driving_charts import choose_large_charts
from dashboard.ui.charts.evidence_table import EvidenceRow
from dashboard.ui.charts.trends import Trend, TrendLine

KEYS = ("p50", "p95", "p99", "throughput", "eager", "errors", "cache")


def trend(key: str, value: float | None = 1.0) -> Trend:
    return Trend(key, key, "", "", [TrendLine(1, "v", [value], [])], "")


def row(key: str, label: str, *, drives: bool = False) -> EvidenceRow:
    return EvidenceRow(key, key, "", "", "", "", "", label, True, drives=drives)


def keys_of(trends: list[Trend]) -> list[str]:
    return [one.key for one in trends]


def test_without_a_verdict_the_usual_four_are_large() -> None:
    large, small = choose_large_charts([trend(key) for key in KEYS], {})
    assert keys_of(large) == ["p50", "eager", "p99", "throughput"]
    assert keys_of(small) == ["p95", "errors", "cache"]


def test_drivers_come_first_and_regressions_before_unchanged_metrics() -> None:
    rows = {
        "cache": row("cache", "REGRESSED", drives=True),
        "errors": row("errors", "REGRESSED"),
        "p50": row("p50", "NO CHANGE"),
    }
    large, _ = choose_large_charts([trend(key) for key in KEYS], rows)
    assert keys_of(large) == ["cache", "errors", "p50", "eager"]


def test_a_chart_without_a_value_is_never_large() -> None:
    large, small = choose_large_charts([trend("p50", None), trend("cache")], {})
    assert (keys_of(large), keys_of(small)) == (["cache"], ["p50"])
