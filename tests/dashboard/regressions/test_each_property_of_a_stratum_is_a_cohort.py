"""GPU type, mode, world size and shape bucket are tested one by one, and the sentence names the
property that separates the slow calls from the others."""

from __future__ import annotations

import pytest

from dashboard.regressions.judge.cohorts import Cohort, list_cohorts
from dashboard.regressions.judge.inputs import CellKey, Traffic
from dashboard.regressions.judge.matched_cell import MatchedCell
from dashboard.regressions.judge.pooled_estimate import combine, group
from dashboard.regressions.judge.serial_noise import SerialNoise
from dashboard.regressions.judge.strata_evidence import list_dimension_changes
from tests.dashboard.regressions.fleets import instance
from tests.dashboard.regressions.test_a_verdict_is_one_sentence import judged, sentence_of

FOUR = [(gpu, mode, "", "") for gpu in ("A100", "H100") for mode in ("default", "max-autotune")]


def cohorts_of(*keys: CellKey) -> dict[Cohort, set[CellKey]]:
    cells = {key: MatchedCell(Traffic(), SerialNoise(0.01, 10)) for key in keys}
    place = {id(cell): key for key, cell in cells.items()}
    return {
        cohort: {place[id(cell)] for parts in strata.values() for cell in parts}
        for cohort, strata in list_cohorts(cells).items()
    }


def test_a_mode_is_a_cohort_over_all_gpu_types() -> None:
    found = cohorts_of(*((stratum, "2^10") for stratum in FOUR))
    assert {cohort.kind for cohort in found} == {"gpu", "mode", "stratum"}
    assert found[Cohort("mode", "max-autotune")] == {(FOUR[1], "2^10"), (FOUR[3], "2^10")}
    assert found[Cohort("gpu", "A100")] == {(FOUR[0], "2^10"), (FOUR[1], "2^10")}


def test_the_whole_is_no_cohort_and_equal_cohorts_are_tested_once() -> None:
    assert cohorts_of((FOUR[0], "2^10")) == {}
    one, two = ("A100", "default", "", ""), ("A100", "default", "", "world size 8")
    found = cohorts_of((one, "2^10"), (two, "2^10"))
    assert set(found) == {
        Cohort("world_size", "world size 1"),
        Cohort("world_size", "world size 8"),
    }


@pytest.mark.parametrize(
    ("place", "phrase"),
    [
        (1, "(+30% in mode max-autotune, 0% in mode default)"),
        (0, "(+30% on A100, 0% on H100)"),
    ],
    ids=["mode", "GPU type"],
)
def test_the_property_that_separates_the_slow_calls_is_named(place: int, phrase: str) -> None:
    rows = []
    for stratum in FOUR:
        slow = stratum[place] in ("max-autotune", "A100")
        name = "".join(stratum)
        rows += [instance(f"b{name}{i}", stratum=stratum) for i in range(2)]
        rows += [
            instance(f"c{name}{i}", stratum=stratum, p50=0.013 if slow else 0.010) for i in range(2)
        ]
    outcome = judged(rows)
    assert outcome.verdict == "roll_back"
    assert phrase in sentence_of(outcome)


def test_properties_that_cannot_be_separated_are_named_together() -> None:
    groups = [
        group(stratum, {"b1": 0.0, "b2": 0.0}, {"c1": change, "c2": change})
        for stratum, change in ((FOUR[0], 0.0), (FOUR[3], 0.3))
    ]
    assert list_dimension_changes(combine(groups, 0.05**2, 15)) == ()


def test_one_instance_of_a_cohort_asks_for_watch_at_most() -> None:
    rows = [instance(f"b{gpu}{i}", stratum=(gpu, "m")) for gpu in ("A100", "H100") for i in (1, 2)]
    rows += [
        instance("cA", stratum=("A100", "m"), p50=0.013),
        *(instance(f"cH{i}", stratum=("H100", "m")) for i in (1, 2, 3)),
    ]
    outcome = judged(list(rows), 90)
    assert "roll_back" not in {verdict for _, verdict in outcome.transitions}
