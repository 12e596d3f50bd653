"""Hold time: a minute counts if the newest minutes contain events, because a window contains a
burst for longer than the burst lasted."""

from __future__ import annotations

import pytest

from tests.bench.bench_simple_rules import CASES, Case, errors_for, verdicts

CALM = [(0, "not_enough_data"), (59, "healthy")]


@pytest.mark.parametrize("minutes", [1, 5, 10, 15])
@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_a_burst_of_errors_on_one_of_three_instances_changes_no_verdict(
    minutes: int, share: float
) -> None:
    assert verdicts(Case("burst", 3, 200, errors_for(minutes, share))) == CALM


def test_lasting_errors_are_watched_and_rolled_back_without_extra_delay() -> None:
    case = next(case for case in CASES if case.name == "5% of calls fail for good")
    assert verdicts(case) == [*CALM, (122, "watch"), (132, "roll_back")]


def test_errors_of_half_an_hour_are_watched() -> None:
    assert "watch" in {
        said for _, said in verdicts(Case("half an hour", 3, 200, errors_for(30, 0.05)))
    }


def test_two_bursts_within_a_window_are_no_roll_back() -> None:
    first, second = errors_for(5, 0.5), errors_for(17, 0.5)
    between = errors_for(12, 0.5)

    def twice(row):  # type: ignore[no-untyped-def]
        return (
            first(row)
            if row.minute < 106
            else second(row)
            if not between(row).errors
            else first(row)
        )

    assert "roll_back" not in {said for _, said in verdicts(Case("twice", 3, 200, twice))}
