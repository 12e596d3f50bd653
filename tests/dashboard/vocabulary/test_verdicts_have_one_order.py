"""The orders of severity contain every verdict and every label once."""

from typing import get_args

from dashboard.regressions.judge.result import Label
from dashboard.regressions.models import VerdictKind
from dashboard.vocabulary import severity


def test_each_order_has_every_verdict_once() -> None:
    for order in (severity.VERDICTS_BY_URGENCY, severity.VERDICTS_BY_CLAIM):
        assert sorted(order) == sorted(VerdictKind.values)


def test_every_label_of_the_judge_has_a_place() -> None:
    assert sorted(severity.LABELS) == sorted(get_args(Label))
    assert severity.order_by_label("MUTED") == len(severity.LABELS)


def test_roll_back_is_the_most_severe_verdict() -> None:
    assert sorted(VerdictKind.values, key=severity.rank_severity)[-1] == VerdictKind.ROLL_BACK
    assert severity.rank_severity("healthy") == severity.rank_severity("unknown") == 0


def test_an_unknown_verdict_comes_last() -> None:
    assert severity.order_by_urgency("unknown") > severity.order_by_urgency("healthy")
