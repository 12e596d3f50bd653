"""Formats of numbers: units, at most three digits, a real minus sign, a non-breaking space, and no
rounding to all or none."""

import pytest

from dashboard.ui.layout.browser_name import browser_name
from dashboard.vocabulary import numbers

S = "\u00a0"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.00084, "840 µs"),
        (0.0184, "18.4 ms"),
        (0.061, "61 ms"),
        (0.2119, "212 ms"),
        (0.99996, "1 s"),
        (1.31, "1.31 s"),
        (48, "48 s"),
        (59.7, "1 min"),
        (161, "2 min 41 s"),
        (125, "2 min 05 s"),
        (5820, "1 h 37 min"),
        (3 * 86400, "3 days"),
        (-87, "−1 min 27 s"),
    ],
)
def test_durations(seconds: float, said: str) -> None:
    assert numbers.duration(seconds).replace(S, " ") == said


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1, "100%"),
        (0.9996, "> 99.9%"),
        (0.712, "71.2%"),
        (0.96, "96%"),
        (0.0011, "0.11%"),
        (0.00001, "< 0.01%"),
        (0, "0%"),
    ],
)
def test_shares(share: float, said: str) -> None:
    assert numbers.percent(share).replace(S, " ") == said


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(0.312, "+31%"), (-0.06, "−6%"), (0.0001, "0%"), (0.024, "+2.4%"), (float("nan"), "?%")],
)
def test_changes(ratio: float, said: str) -> None:
    assert numbers.change(ratio).replace(S, " ") == said


@pytest.mark.parametrize(
    ("difference", "said"), [(-0.281, "−28.1 pts"), (0.01, "+1 pt"), (0.0, "0 pts")]
)
def test_points(difference: float, said: str) -> None:
    assert numbers.points(difference).replace(S, " ") == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 B"), (33_500_000_000, "31.2 GiB"), (1023, "1 KiB"), (-214_748_365, "−205 MiB")],
)
def test_sizes(count: float, said: str) -> None:
    assert numbers.size(count).replace(S, " ") == said


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0", "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36 Edg/130.0", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Safari/604.1", "Safari on iPhone"),
        ("Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36", "Chrome on Android"),
        ("curl/8.5", ""),
    ],
)  # fmt: skip
def test_browsers(agent: str, said: str) -> None:
    assert browser_name(agent) == said
