"""The clock of a host is set while a job runs: windows and calls keep their length, and no window
begins after its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import compilewatch
import pytest
from compilewatch import reporter
from compilewatch.config import Config
from compilewatch.recording.recorder import RECORDER
from compilewatch.sources.registry import InstalledSources
from hypothesis import given, settings
from hypothesis import strategies as st

HOUR, YEAR = 3600.0, 31_556_952.0
STEPS = {
    "an hour on": HOUR,
    "an hour back": -HOUR,
    "a year on": YEAR,
    "a year back": -YEAR,
    "a leap second": -1.0,
    "half a second": 0.5,
}


class TurnedClock:
    """The module `time` as the instance sees it: two clocks; the first clock can be set."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_795_000_000.0, 5_000.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> TurnedClock:
    turned = TurnedClock()
    monkeypatch.setattr(reporter, "time", turned)
    return turned


def begin(clock: TurnedClock, folder: Path) -> reporter.Reporter:
    config = Config(model="m", version="1", endpoint=f"file:{folder / 'reports'}", spool="off")
    return reporter.Reporter(config, RECORDER, InstalledSources(RECORDER), clock.wall)


def windows(one: reporter.Reporter) -> list[tuple[float, float]]:
    return [(entry.start, entry.end) for entry in one.outbox.pending()]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_a_window_keeps_its_length(
    clock: TurnedClock, window: Callable[[], object], tmp_path: Path, step: float
) -> None:
    one = begin(clock, tmp_path)
    clock.passes(4.0)
    clock.wall += step
    clock.passes(6.0)
    one.close_window()
    clock.passes(10.0)
    one.close_window()
    (first_start, first_end), (second_start, second_end) = windows(one)
    assert first_end == 1_795_000_010.0 + step
    assert first_end - first_start == pytest.approx(10.0)
    assert second_start == pytest.approx(first_end) and second_end - second_start == pytest.approx(
        10.0
    )


@given(
    st.lists(
        st.tuples(st.floats(1.0, 100.0), st.floats(-2 * YEAR, 2 * YEAR)), min_size=1, max_size=20
    )
)
@settings(max_examples=50)
def test_every_window_keeps_its_length_for_any_clock(
    parts: list[tuple[float, float]],
) -> None:
    turned, real = TurnedClock(), reporter.time
    reporter.time = turned  # type: ignore[assignment]
    RECORDER.start()
    try:
        one = begin(turned, Path("/nonexistent"))
        for seconds, step in parts:
            turned.wall = max(0.0, turned.wall + step)
            turned.passes(seconds)
            one.close_window()
            start, end = windows(one)[-1]
            assert 0.0 <= start <= end
            assert end - start == pytest.approx(min(seconds, end), abs=0.11)
    finally:
        reporter.time = real
        RECORDER.stop()


def test_a_call_is_timed_by_the_monotonic_clock(
    monkeypatch: pytest.MonkeyPatch, window: Callable[[], object]
) -> None:
    """If the host's clock jumps by an hour during a call, the hour is not part of the call."""
    moments = iter([0.0, HOUR, -HOUR])
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + next(moments, 0.0))
    compilewatch.watch(lambda: time.time(), name="call")()
    report = window()
    (region,) = report.regions  # type: ignore[attr-defined]
    assert region.calls == 1 and 0.0 <= region.latency.max < 60.0
