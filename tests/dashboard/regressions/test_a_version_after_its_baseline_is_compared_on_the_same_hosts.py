"""Sequential rollouts: each host is compared with its own minute a day before, or with its
load-adjusted past."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import exp, log, sin, sqrt, tau

import pytest
from scipy.stats import t

from dashboard.regressions.judge import (
    Comparison,
    Evidence,
    InstanceMinute,
    Outcome,
    evaluate_comparison,
    judge,
)
from dashboard.regressions.judge.affected_instances import MIN_PAST_MINUTES
from dashboard.regressions.judge.settings import ERRORS, P50
from tests.bench.fleet_sim import Fleet, instance_minutes
from tests.dashboard.regressions.fleets import instance
from tests.dashboard.regressions.test_the_change_is_what_the_formula_gives_by_hand import (
    prior_by_hand,
    tail_by_hand,
)

DAY = 1440
HOSTS = {"x": 0.010, "y": 0.012}


def at(arm: str, host: str, **changes: object) -> InstanceMinute:
    return instance(f"{arm[0]}-{host}", host=host, **changes)


def judged(rows: Iterable[InstanceMinute], minutes: int = 60) -> Outcome:
    return judge(rows, now_minute=minutes, deployed_minute=0)


def p50_of(outcome: Outcome) -> Evidence:
    return next(row for row in outcome.evidence if row.metric == "p50")


def a_day_and_after(factor: float, history: int = DAY, minutes: int = 60) -> list[InstanceMinute]:
    """Both hosts follow a daily cycle; the candidate is slower by a different factor on each."""
    rows = []
    for minute in range(-history, minutes):
        for number, (host, level) in enumerate(HOSTS.items()):
            swing = exp(0.05 * sin(tau * minute / DAY))
            if minute < 0:
                rows.append(
                    at(
                        "baseline",
                        host,
                        minute=minute,
                        first_minute=-history - 10,
                        p50=level * swing,
                    )
                )
            else:
                rows.append(
                    at(
                        "candidate",
                        host,
                        minute=minute,
                        first_minute=0,
                        p50=level * swing * factor * (1 + number / 50),
                    )
                )
    return rows


def test_change_and_interval_match_the_formula():
    outcome = judged(a_day_and_after(1.2))
    row = p50_of(outcome)
    changes = [log(1.2), log(1.2 * 1.02)]
    delta = sum(changes) / 2
    df = P50.prior_df + 1
    squares = sum((change - delta) ** 2 for change in changes)
    variance = (P50.prior_df * prior_by_hand(P50, 60 - 9) + squares) / df
    margin = t.ppf(1 - tail_by_hand(P50), df) * sqrt(variance / 2 + P50.day_variance)
    assert row.change == pytest.approx(exp(delta) - 1)
    assert (row.low, row.high) == (
        pytest.approx(exp(delta - margin) - 1),
        pytest.approx(exp(delta + margin) - 1),
    )
    assert (row.baseline_instances, row.candidate_instances, row.affected_instances) == (2, 2, 2)
    # The first ten minutes after the baseline's last minute are excluded: a pause between two calls
    # is
    # no end.
    assert row.matched_minutes == 60 - 9
    assert (row.layouts, outcome.layouts, outcome.comparable_share) == (
        ("day_before",),
        ("day_before",),
        1.0,
    )
    assert [(dot.instance, dot.arm) for dot in row.dots] == [
        (host, arm) for arm in ("baseline", "candidate") for host in HOSTS
    ]


def test_with_less_than_a_day_of_history_the_past_is_adjusted_for_load():
    loads = [100 * (1 + minute % 4) for minute in range(-600, 60)]
    rows = []
    for minute, calls in zip(range(-600, 60), loads, strict=True):
        for host, level in HOSTS.items():
            p50 = level * calls**0.1
            arm = at("baseline", host) if minute < 0 else at("candidate", host, first_minute=0)
            # The candidate has three times the load, and is slower by a tenth beyond the load
            # effect.
            more = 1 if minute < 0 else 3
            now = replace(
                arm,
                minute=minute,
                calls=calls * more,
                compiled=calls * more,
                p50=p50 * (more**0.1 * 1.1 if more > 1 else 1.0),
            )
            rows.append(replace(now, first_minute=-700) if minute < 0 else now)
    outcome = judged(rows)
    assert outcome.layouts == ("past_by_load",)
    assert p50_of(outcome).change == pytest.approx(0.1)


def test_a_load_slope_steeper_than_a_fifth_is_treated_as_chance():
    rows = []
    for minute in range(-600, 60):
        calls = 100 * (1 + minute % 4) * (2 if minute >= 0 else 1)
        arm = (
            at("baseline", "x", first_minute=-700)
            if minute < 0
            else at("candidate", "x", first_minute=0)
        )
        rows.append(
            replace(arm, minute=minute, calls=calls, compiled=calls, p50=0.001 * calls**0.5)
        )
    assert p50_of(judged(rows, 57)).change == pytest.approx(2 ** (0.5 - 0.2) - 1, rel=1e-3)


def fleet_verdicts(fleet: Fleet) -> tuple[dict[str, int], Comparison]:
    comparison = Comparison(0, with_past=True)
    for index, rows in enumerate(instance_minutes(fleet, -fleet.history)):
        comparison.add_minute(index - fleet.history, rows)
    return {
        verdict: minute for minute, verdict in reversed(comparison.policy.transitions)
    }, comparison


FOUR = Fleet(sequential=True, gpus=("H100",), baseline_per_gpu=4, history=DAY, minutes=480)


@pytest.mark.parametrize("history", [DAY, 720])
def test_a_fifth_slower_on_four_hosts_is_found(history: int):
    fleets = [
        replace(FOUR, history=history, seed=86_000 + seed, phase=360 * seed, fault="slow", size=0.2)
        for seed in range(5)
    ]
    assert all("roll_back" in fleet_verdicts(fleet)[0] for fleet in fleets)


@pytest.mark.parametrize("history", [DAY, 720])
def test_a_daily_cycle_and_a_change_of_load_are_no_regression(history: int):
    fleets = [
        replace(FOUR, history=history, seed=74_000 + seed, phase=360 * seed, day_swing=0.08)
        for seed in range(5)
    ]
    said = [fleet_verdicts(fleet)[0] for fleet in fleets]
    assert not any("roll_back" in each for each in said)
    assert sum("healthy" in each for each in said) >= 4


def test_a_history_of_under_three_hours_is_not_used():
    outcome = judged(a_day_and_after(1.0, history=170))
    assert (outcome.verdict, outcome.reason) == ("not_enough_data", "no_common_host")
    assert {item.why for item in outcome.not_compared} == {
        "past_too_short",
        "after_the_baseline_ended",
    }


def test_several_instances_of_a_host_count_as_one():
    twice = [
        each
        for row in a_day_and_after(1.2)
        for each in (row, replace(row, instance=f"{row.instance}2", unit=f"{row.instance}2"))
    ]
    assert p50_of(judged(twice)).candidate_instances == 2
    assert p50_of(judged(twice)).change == pytest.approx(
        p50_of(judged(a_day_and_after(1.2))).change
    )


def test_hosts_that_change_one_by_one_are_compared_side_by_side_then_with_their_own_past():
    def rollout(minutes: int) -> Iterator[InstanceMinute]:
        for minute in range(-DAY, minutes):
            for number, (host, level) in enumerate(HOSTS.items()):
                change = 60 * number
                arm = (
                    at("baseline", host, first_minute=-DAY - 10)
                    if minute < change
                    else at("candidate", host, first_minute=change)
                )
                yield replace(
                    arm, minute=minute, p50=level * (1.3 if arm.arm == "candidate" else 1.0)
                )

    assert judged(rollout(50), 50).layouts == ("side_by_side",)
    outcome = judged(rollout(200), 200)
    assert (outcome.verdict, outcome.layouts) == ("roll_back", ("day_before", "side_by_side"))
    assert p50_of(outcome).candidate_instances == 2


def test_eager_calls_are_compared_with_the_baselines_last_minutes():
    def rows(share: float) -> Iterator[InstanceMinute]:
        for row in a_day_and_after(1.0):
            eager = round(100 * share) if row.arm == "candidate" and row.host == "y" else 0
            yield replace(
                row, compiled=100 - eager, eager=eager, eager_by={"limit": eager} if eager else {}
            )

    assert judged(rows(0.5)).verdict == "roll_back"
    assert judged(rows(0.0)).verdict != "roll_back"


def test_errors_are_compared_with_the_rate_of_the_baselines_last_day():
    def rows(errors: int) -> Iterator[InstanceMinute]:
        for row in a_day_and_after(1.0, minutes=120):
            before = int(row.minute % 5 == 0)
            yield replace(
                row, calls=1000, compiled=1000, errors=errors if row.arm == "candidate" else before
            )

    # One in a hundred is not over the threshold of an affected instance: only the rate shows it.
    outcome = judged(rows(10), 120)
    errors = next(row for row in outcome.evidence if row.metric == "errors")
    assert (outcome.verdict, errors.rule) == ("roll_back", "rate")
    # A storm of errors can hit any version, and no other one runs at the same time.
    assert judged(rows(10), MIN_PAST_MINUTES + ERRORS.hold_minutes - 5).verdict == "watch"
    assert judged(rows(1), 120).verdict != "roll_back"


def test_a_comparison_without_the_day_before_requests_it_and_then_agrees():
    rows = a_day_and_after(1.3)
    live = Comparison(0)
    for minute in range(60):
        live.add_minute(minute, [row for row in rows if row.minute == minute])
    assert live.wants_past
    past = Comparison(0, with_past=True)
    for minute in range(-DAY, 60):
        past.add_minute(minute, [row for row in rows if row.minute == minute])
    assert not past.wants_past
    assert evaluate_comparison(past, now_minute=60) == judged(rows)
