"""The tables of a calibration: false verdicts of healthy fleets, faults found after their onset,
and the intervals of both."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.stats import binomtest

from tests.bench.calibrate_table import (
    PEERS,
    first,
    is_false_before,
    is_improved,
    is_named,
    list_wrong,
    tables,
    upper_bound,
    wilson,
)

LINE: dict[str, Any] = {
    "judge": "j",
    "prior": "production",
    "minutes": 720,
    "seeds": "tuning",
    "group": "healthy",
    "name": "usual noise",
    "layout": "2 v 2",
    "seed": 1,
    "faster": False,
    "part": "",
    "onset": None,
    "transitions": [[0, "not_enough_data"]],
    "final": "not_enough_data",
    "reason": "too_short",
    "sentences": {"final": "Too little data."},
    "labels": {},
    "cost": 0.001,
    "peers": dict.fromkeys(PEERS),
    "took": 1.0,
}


def line(seed: int, *verdicts: tuple[int, str], **changes: Any) -> dict[str, Any]:
    """A deployment with these verdicts after the first one."""
    sentences = {verdict: f"Sentence of {verdict}." for _, verdict in verdicts}
    return {
        **LINE,
        "seed": seed,
        "transitions": [[0, "not_enough_data"], *map(list, verdicts)],
        "final": verdicts[-1][1] if verdicts else "not_enough_data",
        "sentences": {"final": "The end.", **sentences},
        **changes,
    }


def faulty(seed: int, *verdicts: tuple[int, str], **changes: Any) -> dict[str, Any]:
    """A deployment with a fault from minute 100 on."""
    fault = {"group": "faulty", "name": "p50 +20%", "onset": 100}
    return line(seed, *verdicts, **{**fault, **changes})


def row(lines: list[dict[str, Any]], name: str) -> list[str]:
    """The cells of the first row with this name."""
    text = next(text for text in tables(lines) if text.startswith(f"| {name} |"))
    return [cell.strip() for cell in text.strip("|").split("|")]


def test_a_healthy_deployment_counts_once_with_its_worst_verdict() -> None:
    cells = row(
        [
            line(1),
            line(2, (30, "watch"), (60, "roll_back")),
            line(3, (30, "watch"), (60, "healthy")),
            line(4, (60, "healthy")),
        ],
        "usual noise",
    )
    assert [cell.split(" (")[0] for cell in cells[1:7]] == [
        "4",
        "1 of 4",
        "75.1%",
        "1 of 4",
        "2 of 4",
        "1 of 4",
    ]


def test_a_fault_is_found_only_after_its_onset() -> None:
    early = faulty(1, (50, "watch"), (60, "healthy"))
    found = faulty(2, (110, "watch"), (130, "roll_back"))
    assert first(early, "watch", "roll_back") is None and is_false_before(early)
    assert first(found, "roll_back") == 30 and first(found, "roll_back", "watch") == 10
    assert not is_false_before(found)
    cells = row([early, found], "p50 +20%")
    assert [cells[2].split(" (")[0], cells[4], cells[5]] == ["1 of 2", "30", "10"]


def test_a_faster_version_is_healthy_and_its_alarms_are_false() -> None:
    faster = line(1, (200, "roll_back"), onset=0, faster=True)
    assert "false roll_back at 200" in next(list_wrong([faster]))
    assert is_improved(line(1, labels={"p50 forward": ["IMPROVED", -0.2, -0.3, -0.1]}))


def test_a_fault_is_named_by_its_sentence() -> None:
    sentences = {"roll_back": "p50 is 20% slower on A100.", "final": "Nothing."}
    found = faulty(1, (130, "roll_back"), part="A100", sentences=sentences)
    assert is_named(found)
    assert not is_named({**found, "part": "large"}) and not is_named({**found, "part": ""})
    whole = faulty(2, (130, "roll_back"))
    assert row([found, whole], "p50 +20%")[6].startswith("1 of 1 ")
    assert row([whole], "p50 +20%")[6] == "–"


def test_an_alarm_of_another_method_before_the_onset_finds_no_fault() -> None:
    peers = dict.fromkeys(PEERS) | {"pooled": 40, "kayenta": 140}
    cells = row([faulty(1, (130, "roll_back"), peers=peers)], "p50 +20%")
    assert [cell.split(" (")[0] for cell in cells[-7:-2]] == ["0 of 1", "1 of 1", *["0 of 1"] * 3]


def test_intervals_are_those_of_the_binomial() -> None:
    for part, whole in ((0, 24), (3, 183), (60, 60)):
        exact = binomtest(part, whole).proportion_ci(0.95, "wilson")
        assert wilson(part, whole) == pytest.approx((exact.low, exact.high), abs=1e-4)
        one_sided = binomtest(part, whole, alternative="less").proportion_ci(0.95, "exact")
        assert upper_bound(part, whole) == pytest.approx(one_sided.high)


def test_totals_name_the_numbers_of_deployments() -> None:
    text = "\n".join(tables([line(1), faulty(2), faulty(3), line(4, group="question")]))
    assert "1 healthy, 2 faulty, 1 deployments for questions." in text
    assert "NOT ENOUGH DATA, by reason: too_short 1" in text


def test_deployments_of_different_seeds_are_in_no_common_table() -> None:
    with pytest.raises(SystemExit, match="differ in judge"):
        list(tables([line(1), line(2, seeds="test")]))
