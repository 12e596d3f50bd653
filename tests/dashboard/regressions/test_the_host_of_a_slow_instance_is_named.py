"""WATCH names the instance and the host that account for a change."""

from __future__ import annotations

from tests.dashboard.regressions.fleets import instance
from tests.dashboard.regressions.test_a_verdict_is_one_sentence import judged, sentence_of

BASE = [instance(f"b{i}", host=f"h{i}") for i in range(6)]


def sentence(*slow: float) -> str:
    rows = [instance(f"c{i}", host=f"g{i}", p50=p50) for i, p50 in enumerate(slow)]
    outcome = judged([*BASE, *rows], 90)
    assert outcome.verdict == "watch"
    return sentence_of(outcome)


def test_the_one_slow_instance_of_several_is_named_with_its_host() -> None:
    assert sentence(0.010, 0.010, 0.0155).endswith(
        "instance c2 on host g2 alone is 55% slower: check its host first."
    )


def test_the_host_of_the_only_instance_is_named() -> None:
    outcome = judged([*BASE, instance("c1", host="g1", p50=0.014)], 60)
    assert "on its only instance (g1)" in sentence_of(outcome)
