"""Process metrics in words: bytes, seconds, events and percent per hour; confirmed facts have lines
of their own."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.ui.charts.evidence_table import EvidenceRow, build_evidence_rows
from dashboard.ui.charts.fact_lines import fact_lines
from dashboard.ui.layout import change_rows as listed
from dashboard.ui.pages.compare.configuration_diff import format_values

SPACE = "\u00a0"
GIB = 1 << 30


def raw(metric: str, unit: str, **changes: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("change", "low", "high"))
    known = {
        "region": "",
        "label": "REGRESSED",
        "judged": True,
        "hard": False,
        "drives": True,
        "candidate_instances": 6,
    }
    return {
        "metric": metric,
        "unit": unit,
        "matched_minutes": 30,
        "affected_instances": 2,
        **nothing,
        **known,
        **changes,
    }


MEMORY = raw(
    "gpu_memory",
    "bytes",
    baseline=30 * GIB,
    candidate=36 * GIB,
    change=0.2,
    low=0.15,
    high=0.25,
    hard=True,
)
LEAK = raw(
    "leak",
    "share per hour",
    baseline=0.0004,
    candidate=0.0204,
    change=0.02,
    low=0.01,
    high=0.03,
    smallest_effect=0.005,
)
STORM = raw("recompiles", "per hour", baseline=0.3, candidate=30.3, smallest_effect=10.0)
CACHE = raw("cache", "share", baseline=0.05, candidate=0.6, smallest_effect=0.1)


def plain(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text.replace(SPACE, " ") for text in texts)


def shown(row: dict[str, Any], verdict: str = "watch") -> EvidenceRow:
    (found,) = build_evidence_rows({"evidence": [row]}, verdict=verdict)
    return found


def test_each_unit_has_its_usual_notation() -> None:
    texts = [
        (one.title, one.baseline, one.candidate, one.change)
        for one in map(shown, (MEMORY, LEAK, STORM, CACHE))
    ]
    assert [plain(row) for row in texts] == [
        ("Peak GPU memory", "30 GiB", "36 GiB", "+20%"),
        ("GPU memory growth", "0.04%/h", "2%/h", "+2%/h"),
        ("Recompiles", "0.30 /h", "30.3 /h", "+30 /h"),
        ("Cache misses", "5%", "60%", "+55 pts"),
    ]


def test_a_count_shows_the_number_of_affected_instances() -> None:
    assert plain((shown(STORM).spread, shown(CACHE).spread)) == (
        "2 of 6 instances",
        "2 of 6 instances",
    )
    assert "per hour and instance" in shown(STORM).effect
    assert "compile seconds" in shown(CACHE).effect


def test_a_process_metric_does_not_count_as_a_second_region() -> None:
    calls = raw(
        "p50", "s", region="forward", baseline=0.01, candidate=0.011, change=0.1, low=0.0, high=0.2
    )
    assert [row.detail for row in build_evidence_rows({"evidence": [calls, MEMORY]})] == [
        "wall time",
        "per instance",
    ]
    two = [calls, calls | {"region": "encode"}, MEMORY]
    assert [row.detail for row in build_evidence_rows({"evidence": two})] == [
        "wall time, forward",
        "wall time, encode",
        "per instance",
    ]


@pytest.mark.parametrize("row", [LEAK, STORM, CACHE])
def test_a_metric_that_raises_only_watch_is_never_red(row: dict[str, Any]) -> None:
    assert not shown(row).red
    assert shown(row).caution


def test_alert_lists_and_notifications_contain_the_units() -> None:
    found = listed.build_change_rows({"evidence": [STORM, CACHE]}, "watch")
    assert [
        plain(
            (
                row.name,
                row.frozen.baseline_said,
                row.frozen.candidate_said,
                row.frozen.change_said,
                row.interval,
            )
        )
        for row in found
    ] == [
        ("Recompiles", "0.30 /h", "30.3 /h", "+30 /h", "2 of 6 instances"),
        ("Cache misses", "5%", "60%", "+55 pts", "2 of 6 instances"),
    ]
    texts = [line["text"] for line in select_strongest_evidence({"evidence": [STORM, CACHE]})]
    assert any("30.3\u00a0/h (before: 0.30\u00a0/h)" in text for text in texts)
    assert any("of compile seconds" in text for text in texts)


FACT = {
    "kind": "latched_eager",
    "severity": "watch",
    "about": "forward",
    "why": "",
    "since": 7,
    "instances": ["a", "b"],
    "on_baseline": 0,
}


def test_a_fact_is_one_line_with_its_instances() -> None:
    (line,) = fact_lines({"facts": [FACT]})
    assert plain((line.text, line.where)) == (
        "`forward` runs eager until its process restarts",
        "on 2 instances, not on the baseline",
    )
    assert line.since == 7


def test_a_fact_in_the_verdict_sentence_is_not_repeated() -> None:
    assert not fact_lines(
        {"facts": [FACT]},
        sentence="Roll back b: 28% of calls run eager: `forward` reached its recompile limit.",
    )


def test_a_fact_that_the_baseline_shows_too_is_marked_as_known() -> None:
    (line,) = fact_lines({"facts": [FACT | {"severity": "known", "on_baseline": 3}]})
    assert plain((line.mark, line.where)) == (
        "not_enough_data",
        "on 2 instances, also on 3 instances of the baseline",
    )


@pytest.mark.parametrize(
    "stored", [None, {}, {"facts": None}, {"facts": ["x", {}, {"kind": "parity", "instances": 3}]}]
)
def test_stored_facts_in_another_format_do_not_break_the_page(stored: Any) -> None:
    assert len(fact_lines(stored)) <= 1


def test_several_values_are_shown_with_their_numbers_of_instances() -> None:
    assert format_values([["H100", 3], ["A100", 1]]) == "H100 × 3, A100 × 1"
    assert (format_values([["2.11.0", 4]]), format_values([["", 4]]), format_values(None)) == (
        "2.11.0",
        "unset",
        "unset",
    )
