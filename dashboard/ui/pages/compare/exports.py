"""Serialization of changes between two versions and of the Compare page's rows: numbers with units,
times in ISO 8601."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboard.common import clock
from dashboard.fleet.selectors.versions.version_series import Span
from dashboard.regressions.stored_evidence import RATES, Change
from dashboard.ui.charts.evidence_table import NOT_JUDGED, EvidenceRow

COUNTS = ("baseline_events", "baseline_calls", "candidate_events", "candidate_calls")
"""The counts behind a share of calls."""
COLUMNS = (
    *(
        "metric",
        "title",
        "detail",
        "region",
        "unit",
        "baseline_version",
        "candidate_version",
        "baseline",
        "candidate",
    ),
    *(
        "baseline_at_most",
        "candidate_at_most",
        "change_ratio",
        "change_low_ratio",
        "change_high_ratio",
        "label",
        "judged",
        "drives",
    ),
    *(
        "window",
        "window_minutes",
        "excluded_baseline",
        "excluded_candidate",
        *COUNTS,
        "strata_agreeing",
        "strata",
        "since",
        "onset_earliest",
        "onset_latest",
    ),
)


CHANGE_FIELDS = (
    *("metric", "region", "unit", "label", "reason", "judged", "drives", "hard", "muted"),
    *("baseline", "candidate", "baseline_at_most", "candidate_at_most"),
    *("baseline_instances", "candidate_instances", "affected_instances"),
)


def serialize_change(change: Change) -> dict[str, Any]:
    """An evaluated change in numbers. `unit` applies to baseline and candidate; the change is a
    ratio minus 1, and None for a rate."""
    before, after = change.excluded or (None, None)
    counts = (*(change.baseline_counts or (None, None)), *(change.candidate_counts or (None, None)))
    ratio, low, high = change.change, change.low, change.high
    if change.unit in RATES:
        ratio = low = high = None
    return {name: getattr(change, name) for name in CHANGE_FIELDS} | {
        "causes": dict(change.causes),
        "change_ratio": ratio,
        "change_low_ratio": low,
        "change_high_ratio": high,
        "window": change.window or ("span" if change.label == NOT_JUDGED else None),
        "window_minutes": change.minutes,
        "excluded_baseline": before,
        "excluded_candidate": after,
        **dict(zip(COUNTS, counts, strict=True)),
    }


def serialize_row(row: EvidenceRow) -> dict[str, Any]:
    """A row of the evidence table; `label` is NOT JUDGED or MUTED if the row has only observed
    values."""
    return serialize_change(row.frozen) | {
        "title": row.title,
        "detail": row.detail,
        "label": row.label,
        "follows": row.follows or None,
        "strata_agreeing": row.agree[0] if row.agree else None,
        "strata": row.agree[1] if row.agree else None,
        "since": clock.at_minute(row.since).isoformat() if row.since is not None else None,
        "onset_earliest": clock.at_minute(row.onset[0]).isoformat() if row.onset else None,
        "onset_latest": clock.at_minute(row.onset[1]).isoformat() if row.onset else None,
    }


def serialize_span(span: Span | None) -> dict[str, str] | None:
    """The time span of observed rows; the end is exclusive."""
    return (
        {
            "first": clock.at_minute(span.first).isoformat(),
            "last": clock.at_minute(span.last).isoformat(),
        }
        if span
        else None
    )


def rows_table(rows: Sequence[EvidenceRow], baseline: str, candidate: str) -> list[list[Any]]:
    """The rows as a table with a header row."""
    told = [
        serialize_row(row) | {"baseline_version": baseline, "candidate_version": candidate}
        for row in rows
    ]
    return [list(COLUMNS), *([one[name] for name in COLUMNS] for one in told)]
