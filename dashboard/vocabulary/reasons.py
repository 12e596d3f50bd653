"""Reason table: why calls are not compared, and why a metric has no result."""

from __future__ import annotations

NOT_COMPARED = {
    "no_baseline_in_stratum": "no baseline on the same GPU type, mode and world size",
    "no_baseline_in_bucket": "no baseline call of the same shape in the same minutes",
    "no_run_in_bucket": "no earlier run of the same shape",
    "too_few_calls": "too few calls to compare",
    "one_sided": "not reported by both versions",
    "agents_differ": "not comparable: agent versions differ",
    "after_the_baseline_ended": "after the baseline had ended",
    "no_baseline_on_host": "the baseline did not run on this host",
    "past_too_short": "the baseline ran for under 3 h on this host",
}
"""Why candidate calls have no counterpart."""
UNDECIDED = {
    "one_sided": "one version does not report it",
    "too_few_calls": "too few calls per minute",
    "bucket_too_wide": "the engine's histogram bucket is wider than the difference",
    "too_few_runs": "too few runs of earlier versions",
}
"""Why a metric that both versions report has no change."""


def describe_not_compared(reason: str) -> str:
    """The reason in words; an unknown reason is its own name."""
    return NOT_COMPARED.get(reason, reason.replace("_", " "))
