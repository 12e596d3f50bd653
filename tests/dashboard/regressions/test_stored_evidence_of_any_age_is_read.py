"""Stored evidence of any age is read into typed rows; unreadable parts are skipped."""

from typing import Any

import pytest

from dashboard.regressions.evidence_reader import (
    find_rank_divergence,
    list_urgent_facts,
    read_changes,
    read_coverage,
    read_drifts,
    read_environment,
    read_excluded_calls,
    read_facts,
    read_held_by,
    read_mix_shifts,
    read_next_step,
)
from dashboard.ui.pages.compare.exports import serialize_change

READERS = (
    read_changes,
    read_facts,
    read_drifts,
    read_excluded_calls,
    read_mix_shifts,
    read_environment,
)


@pytest.mark.parametrize("evidence", [None, 3, [], {}, dict.fromkeys(("evidence", "facts"), 7)])
def test_evidence_without_rows_is_empty(evidence: Any) -> None:
    assert [reader(evidence) for reader in READERS] == [[]] * len(READERS)
    assert read_coverage(evidence).layouts == ("side_by_side",)
    assert find_rank_divergence(evidence) is None and not list_urgent_facts(evidence)
    assert read_held_by(evidence) is None and read_next_step(evidence) is None


@pytest.mark.parametrize("row", [None, [], "p50", {"metric": 3}])
def test_an_unreadable_advice_is_none(row: Any) -> None:
    assert read_held_by({"held_by": row}) is None and read_next_step({"next_step": row}) is None


def test_an_incomplete_advice_keeps_its_readable_parts() -> None:
    held_by = read_held_by({"held_by": {"metric": "memory", "change": "much", "high": 0.2}})
    assert held_by is not None
    assert (held_by.metric, held_by.change, held_by.high) == ("gpu_memory", None, 0.2)
    step = read_next_step({"next_step": {"kind": "of a later release", "minutes": 60}})
    assert step is not None and (step.kind, step.minutes, step.count) == (
        "of a later release",
        60,
        0,
    )


def test_a_share_has_its_counts_if_the_row_states_them() -> None:
    row = {"metric": "errors", "unit": "share", "baseline": 0.0, "candidate": 1 / 88}
    (old,) = read_changes({"evidence": [row]})
    assert (old.candidate_counts, old.candidate_counted) == (None, "1.1% of calls")
    counts = {"candidate_events": 1, "candidate_calls": 88, "baseline_events": 0}
    (new,) = read_changes({"evidence": [row | counts]})
    assert (new.candidate_counts, new.baseline_counts) == ((1, 88), None)
    assert new.candidate_counted == "1 of 88\u00a0calls (1.1%)"
    assert [serialize_change(new)[f"{arm}_calls"] for arm in ("baseline", "candidate")] == [
        None,
        88,
    ]


@pytest.mark.parametrize(
    ("old", "new"), [("gpu_peak", "gpu_memory"), ("compile_seconds", "compile_time")]
)
def test_an_old_key_becomes_the_current_key(old: str, new: str) -> None:
    (change,) = read_changes({"metrics": [{"metric": old, "baseline": 1.0}]})
    assert (change.metric, change.baseline, change.label) == (new, 1.0, "NOT ENOUGH DATA")


def test_less_throughput_has_a_negative_change_and_a_positive_place_in_the_plot() -> None:
    row = {"metric": "throughput", "worse": -1, "change": 1.0, "low": 0.5, "high": 3.0}
    (change,) = read_changes({"evidence": [row, "no row"]})
    assert (change.change, change.low, change.high) == pytest.approx((-0.5, -0.75, -1 / 3))
    assert change.log_interval == pytest.approx((0.6931, 0.4055, 1.3863), abs=1e-4)


def test_an_environment_keeps_its_valid_values() -> None:
    row = {"key": "torch", "baseline": [["2.9", 4], "odd", [1, 2, 3]], "candidate": None}
    (change,) = read_environment({"environment": [row, {"baseline": []}]})
    assert (change.key, change.baseline, change.candidate) == ("torch", (("2.9", 4),), ())


def test_a_fact_of_the_baseline_is_no_news() -> None:
    facts = [
        {"kind": "ranks_diverged", "severity": "known"},
        {"kind": "parity", "severity": "roll_back", "about": "golden", "instances": ["a", 1]},
        {"severity": "watch"},
    ]
    known, wrong = read_facts({"facts": facts})
    assert (known.news, wrong.news, wrong.instances) == (False, True, ("a", "1"))
    assert list_urgent_facts({"facts": facts}) == {"parity golden"}
