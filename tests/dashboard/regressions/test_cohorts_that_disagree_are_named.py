"""A sentence names the cohorts whose changes disagree, and the evidence has an interval of each."""

from __future__ import annotations

import pytest

from dashboard.regressions.judge.pooled_estimate import combine, group
from dashboard.regressions.judge.strata_evidence import strata_differ
from tests.dashboard.regressions.fleets import instance
from tests.dashboard.regressions.test_a_verdict_is_one_sentence import judged, sentence_of


def fleet(**p50: float) -> list:
    rows = []
    for gpu, candidate in p50.items():
        stratum = (f"NVIDIA {gpu}", "bf16")
        rows += [instance(f"b{gpu}{i}", stratum=stratum, p50=0.010) for i in range(4)]
        rows += [instance(f"c{gpu}{i}", stratum=stratum, p50=candidate) for i in range(4)]
    return rows


def test_a_change_on_one_gpu_type_is_named_without_the_common_parts() -> None:
    outcome = judged(fleet(A100=0.013, H100=0.0102))
    (p50,) = (row for row in outcome.evidence if row.metric == "p50")
    assert p50.strata_differ
    assert "(+30% on NVIDIA A100, +2% on NVIDIA H100)" in sentence_of(outcome)
    for part in p50.strata:
        assert part.low < part.change < part.high
        assert part.high - part.low > p50.high - p50.low, "one cohort is less certain than both"


def test_cohorts_that_agree_are_not_named() -> None:
    outcome = judged(fleet(A100=0.013, H100=0.0132))
    assert outcome.verdict == "roll_back" and " on NVIDIA A100" not in sentence_of(outcome)


def test_the_advice_names_its_cohort_without_the_common_parts() -> None:
    rows = []
    for gpu in ("A100", "H100"):
        stratum = (f"NVIDIA {gpu}", "bf16")
        rows += [instance(f"b{gpu}", stratum=stratum)]
        rows += [instance(f"c{gpu}", stratum=stratum, p50=0.0104)]
    sentence = sentence_of(judged([*rows, instance("b9", stratum=("NVIDIA H100", "bf16"))], 70))
    assert " instances on NVIDIA " in sentence and "bf16" not in sentence


def test_of_several_cohorts_the_extremes_are_named() -> None:
    sentence = sentence_of(judged(fleet(A100=0.014, H100=0.0102, L40S=0.012)))
    assert "(+40% on NVIDIA A100, +2% on NVIDIA H100, 1 more cohort in between)" in sentence


@pytest.mark.parametrize(
    ("changes", "differ"),
    [
        ((0.30, 0.20), False),
        ((0.60, 0.20), True),
        ((0.08, 0.03), True),
        ((0.04, 0.01), False),
        ((0.20,), False),
    ],
    ids=["within errors", "beyond errors", "only one matters", "none matters", "one cohort"],
)
def test_cohorts_differ_beyond_their_errors_or_if_only_one_matters(
    changes: tuple[float, ...], differ: bool
) -> None:
    groups = [
        group(str(number), {"b1": 0.0, "b2": 0.0}, {"c1": change, "c2": change})
        for number, change in enumerate(changes)
    ]
    assert strata_differ(combine(groups, 0.05**2, 15), 0.049) is differ
