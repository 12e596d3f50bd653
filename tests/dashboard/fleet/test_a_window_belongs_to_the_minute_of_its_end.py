"""Minute of a window: its end decides, corrected by the clock offset, and long windows have no
minute."""

from __future__ import annotations

import pytest
from compilewatch.wire.messages import Report

from dashboard.fleet.fold.report_window import correct_window

MINUTE = 29_833_333
START = MINUTE * 60.0


@pytest.mark.parametrize(
    ("window", "offset", "minute"),
    [
        ((START, START + 10), 0.0, MINUTE),
        ((START + 50, START + 60), 0.0, MINUTE),
        ((START + 50, START + 60.0001), 0.0, MINUTE),
        ((START + 55, START + 65), 0.0, MINUTE + 1),
        ((START + 20, START + 30), 1.9, MINUTE),
        ((START + 20, START + 30), 90.0, MINUTE + 1),
        ((START + 20, START + 30), -90.0, MINUTE - 2),
        ((START + 50, START + 60), 2.0, MINUTE),
        ((START + 50, START + 60), 2.5, MINUTE + 1),
    ],
)
def test_the_end_decides(window: tuple[float, float], offset: float, minute: int) -> None:
    assert correct_window(Report((1, 1), window), offset).minute == minute


@pytest.mark.parametrize(
    ("seconds", "long"),
    [(10.0, False), (60.0, False), (60.0002, False), (60.1, True), (3600.0, True)],
)
def test_a_window_over_a_minute_is_long(seconds: float, long: bool) -> None:
    assert correct_window(Report((1, 1), (START, START + seconds)), 0.0).long is long


def test_a_long_window_counts_as_present_from_its_start() -> None:
    window = correct_window(Report((1, 3), (START, START + 600)), 0.0)
    assert (window.first_minute, window.minute) == (MINUTE, MINUTE + 9)
