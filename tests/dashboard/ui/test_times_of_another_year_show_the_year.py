"""A time of another year includes the year, before and after scripts run: without the year, a range
of one year looks like one month."""

from datetime import UTC, datetime

import pytest

from dashboard.common import clock
from dashboard.ui.templatetags.format_filters import clock_time


@pytest.mark.parametrize(
    ("at", "shape", "text"),
    [
        (datetime(2025, 10, 25, 8, 5, tzinfo=UTC), "clock", ">25 Oct 2025 08:05<"),
        (datetime(2026, 11, 22, 23, 59, tzinfo=UTC), "clock", ">22 Nov 23:59<"),
        (datetime(2026, 11, 5, 8, 5, tzinfo=UTC), "clock", ">5 Nov 08:05<"),
        (datetime(2026, 10, 25, 8, 5, tzinfo=UTC), "day", ">25 Oct 08:05<"),
        (datetime(2026, 11, 23, 8, 5, tzinfo=UTC), "clock", ">08:05<"),
    ],
)
def test_a_time_of_another_year_includes_the_year(
    monkeypatch: pytest.MonkeyPatch, at: datetime, shape: str, text: str
) -> None:
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 11, 23, 12, tzinfo=UTC))
    assert text in clock_time(at, shape)
