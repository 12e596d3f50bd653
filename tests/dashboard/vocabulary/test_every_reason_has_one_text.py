"""Every reason for excluding calls from the comparison has one text."""

from typing import get_args

import pytest

from dashboard.regressions.judge.result import NotComparedReason, Reason
from dashboard.vocabulary.reasons import NOT_COMPARED, UNDECIDED, describe_not_compared


@pytest.mark.parametrize("reason", get_args(NotComparedReason))
def test_a_reason_of_the_judge_has_a_text(reason: str) -> None:
    assert describe_not_compared(reason) == NOT_COMPARED[reason]


def test_a_metric_lacks_a_change_only_for_reasons_of_the_judge() -> None:
    assert set(UNDECIDED) <= set(get_args(Reason))


def test_an_unknown_reason_is_its_own_name() -> None:
    assert describe_not_compared("moon_phase") == "moon phase"
