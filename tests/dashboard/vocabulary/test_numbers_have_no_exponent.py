"""Number formatter, and the headlines that use it."""

from __future__ import annotations

import pytest

from dashboard.alerts.alert_title import build_alert_title
from dashboard.vocabulary import numbers
from dashboard.vocabulary.numbers import percent, significant


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, 3, "0"), (100, 2, "100"), (99.6, 2, "100"), (1234.5, 2, "1,234"), (1e7, 3, "10,000,000"), (18.44, 3, "18.4"),
        (0.00012, 2, "0.00012"), (1e-9, 3, "0.000000001"), (-4.10, 3, "\u22124.1"), (float("inf"), 3, "?"), (float("nan"), 3, "?"),
    ],
)  # fmt: skip
def test_digits(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100"), (0.9999, ">\u00a099.9"), (0.996, "99.6"), (0.994, "99.4"), (0.99, "99"),
        (0.279, "27.9"), (0.041, "4.1"), (0.0, "0"), (0.000004, "<\u00a00.01"),
    ],
)  # fmt: skip
def test_shares(share: float, text: str) -> None:
    assert percent(share) == f"{text}%"


@pytest.mark.parametrize(("share", "said"), [(1.0, "100"), (0.997, "99.7"), (0.28, "28")])
def test_a_headline_contains_a_share_without_an_exponent(share: float, said: str) -> None:
    row = {
        "metric": "eager",
        "unit": "share",
        "candidate": share,
        "baseline": 0.0,
        "change": None,
        "drives": True,
        "label": "REGRESSED",
    }
    title = build_alert_title(
        model="ranker", version="2", sentence="", evidence={"evidence": [row]}
    )
    assert title == f"ranker 2: {said}% of calls run eager"


@pytest.mark.parametrize(
    "size", [10.0**power * digit for power in range(-12, 13) for digit in (1, 9.96, 9.996)]
)
def test_no_formatter_writes_an_exponent(size: float) -> None:
    said = [
        numbers.number(size),
        numbers.duration(size),
        numbers.size(size),
        numbers.percent(size),
        numbers.change(size),
        numbers.points(size),
    ]
    said += [significant(size, 2), numbers.level(size, "s"), numbers.change_range(size, 2 * size)]
    assert [text for text in said if "e+" in text or "e-" in text] == []
