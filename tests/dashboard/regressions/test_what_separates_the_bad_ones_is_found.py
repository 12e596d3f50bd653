"""Comparison of degraded and healthy instances: a planted difference comes first, and chance alone
is not reported as a difference."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.regressions.judge.trait_separation import (
    MIN_SCORE,
    Separation,
    compute_chance,
    find_separations,
)

TRAITS = st.dictionaries(
    st.sampled_from(["gpu", "driver", "host", "cache folder", "rank"]),
    st.sampled_from(["a", "b", "c"]),
    max_size=5,
)
SIDE = st.lists(TRAITS, min_size=1, max_size=12)


@given(SIDE, SIDE, st.randoms(use_true_random=False))
def test_the_order_of_instances_is_irrelevant(
    bad: list[dict[str, str]], good: list[dict[str, str]], chance: random.Random
) -> None:
    before = find_separations(bad, good)
    for side in (bad, good):
        chance.shuffle(side)
    assert {(one.key, one.value, one.score) for one in find_separations(bad, good)} == {
        (one.key, one.value, one.score) for one in before
    }


@given(SIDE, SIDE)
def test_scores_are_shares_and_the_best_comes_first(
    bad: list[dict[str, str]], good: list[dict[str, str]]
) -> None:
    found = find_separations(bad, good)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True) and all(
        MIN_SCORE <= score <= 1 for score in scores
    )
    for one in found:
        assert one.bad_with == sum(each.get(one.key, "") == one.value for each in bad)
        assert one.good_with == sum(each.get(one.key, "") == one.value for each in good)
        assert 0 <= one.chance <= 1


@given(SIDE, SIDE)
def test_both_sides_see_the_same_difference(
    bad: list[dict[str, str]], good: list[dict[str, str]]
) -> None:
    one, other = find_separations(bad, good), find_separations(good, bad)
    assert max((each.score for each in one), default=0) == pytest.approx(
        max((each.score for each in other), default=0)
    )


@given(SIDE)
def test_equal_or_single_instances_have_no_difference(side: list[dict[str, str]]) -> None:
    assert find_separations(side, []) == [] == find_separations([], side)
    assert find_separations([side[0]] * 3, [side[0]] * 5) == []


@given(SIDE, SIDE)
def test_a_planted_trait_is_among_the_best_and_is_never_hidden(
    bad: list[dict[str, str]], good: list[dict[str, str]]
) -> None:
    planted = find_separations(
        [one | {"planted": "x"} for one in bad], [one | {"planted": "y"} for one in good]
    )
    assert planted[0].score == 1
    assert any(
        "planted" in (one.key, *(key for key, _ in one.also)) for one in planted if one.score == 1
    )


def test_a_trait_that_few_instances_report_hides_no_trait_that_all_report() -> None:
    bad, good = (
        [{"driver": "b", "rank": "1"}, {"rank": "0"}],
        [{"driver": "a", "rank": "0"}, {"driver": "a", "rank": "0"}],
    )
    found = {
        one.key: (one.bad_with, one.bad, one.good_with, one.good)
        for one in find_separations(bad, good)
    }
    assert found == {"driver": (1, 1, 0, 2), "rank": (1, 2, 0, 2)}, (
        "counted over the instances that report it, and not listed as equal"
    )


def test_traits_with_the_same_split_are_grouped() -> None:
    bad = [{"torch": "2.12", "triton": "3.7", "host": f"h{n}"} for n in range(6)]
    good = [{"torch": "2.11", "triton": "3.6", "host": f"g{n}"} for n in range(6)]
    [only] = find_separations(bad, good)
    assert (only.key, only.value, only.also, only.sure) == (
        "torch",
        "2.12",
        (("triton", "3.7"),),
        "clear",
    )


def test_few_instances_are_reported_as_such() -> None:
    [only] = find_separations([{"driver": "570"}], [{"driver": "550"}] * 3)
    assert (only.score, only.sure) == (1.0, "few")
    assert compute_chance(Separation("driver", "570", False, 3, 3, 0, 9, 1.0)) == pytest.approx(
        1 / 220
    )


def test_chance_alone_is_rarely_called_clear() -> None:
    dealt = random.Random(7)
    clear = 0
    for _ in range(300):
        fleet = [{f"key {n}": dealt.choice("abc") for n in range(12)} for _ in range(16)]
        clear += any(one.sure == "clear" for one in find_separations(fleet[:5], fleet[5:]))
    assert clear <= 6, "one key in a hundred comparisons, in both directions"


def test_a_real_cause_is_clear_among_noise() -> None:
    dealt = random.Random(8)
    fleet = [{f"key {n}": dealt.choice("abc") for n in range(12)} for _ in range(24)]
    found = find_separations(
        [one | {"driver": "570"} for one in fleet[:8]],
        [one | {"driver": "550"} for one in fleet[8:]],
    )
    assert (found[0].key, found[0].sure) == ("driver", "clear")


def test_autotuning_choices_by_noise_are_rarely_called_clear() -> None:
    dealt = random.Random(11)
    clear = 0
    for _ in range(300):
        # As many operators as a process reports; each process picks the second fastest kernel once
        # in
        # four times.
        fleet = [
            {f"kernel mm {n}": dealt.choice(("fast", "fast", "fast", "nearly")) for n in range(64)}
            for _ in range(16)
        ]
        clear += any(one.sure == "clear" for one in find_separations(fleet[:5], fleet[5:]))
    assert clear <= 6


def test_a_kernel_of_only_the_slow_instances_is_named_among_the_noise() -> None:
    dealt = random.Random(13)
    noise = [
        {f"kernel mm {n}": dealt.choice(("fast", "nearly")) for n in range(12)} for _ in range(18)
    ]
    bad = [{**one, "kernel addmm 9f8e7d": "triton_mm 77aa"} for one in noise[:6]]
    good = [{**one, "kernel addmm 9f8e7d": "addmm 1234"} for one in noise[6:]]
    first = find_separations(bad, good)[0]
    assert (first.key, first.value, first.score, first.sure) == (
        "kernel addmm 9f8e7d",
        "triton_mm 77aa",
        1.0,
        "clear",
    )
