"""Clocks of simulated nodes differ and step, and reports are missing: rows arrive in other minutes
than those in which they happened, and never twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from tests.bench.fleet_model import Fleet
from tests.bench.fleet_sim import instance_minutes, simulate
from tests.bench.process_sim import instance_states

FLEET = Fleet(seed=920_001, minutes=600, gpus=("H100",), candidates=1, stagger=0)


def test_a_skewed_clock_shifts_all_minutes_of_a_node() -> None:
    usual, found = simulate(FLEET), simulate(replace(FLEET, clock_skew=2))
    shifts = set()
    for row in range(len(usual.gpu)):
        matching = [
            shift
            for shift in range(-2, 3)
            if (np.roll(usual.calls[row], shift, axis=0)[10:-10] == found.calls[row][10:-10]).all()
        ]
        assert len(matching) == 1
        shifts.update(matching)
    assert len(shifts) > 1


def test_a_clock_that_steps_leaves_a_gap_or_reports_a_minute_once() -> None:
    fleet = replace(FLEET, clock_steps_per_day=10.0)
    seen = Counter(
        (row.instance, row.bucket, row.minute) for rows in instance_minutes(fleet) for row in rows
    )
    assert set(seen.values()) == {1}
    calls = simulate(fleet).calls.sum(axis=2)
    assert 0 < (calls[:, 20:-20] == 0).mean() < 0.2


def test_missing_minutes_are_missing_for_calls_and_processes() -> None:
    fleet = replace(FLEET, missing=0.1, gaps_per_day=4.0)
    calls = {(row.instance, row.minute) for rows in instance_minutes(fleet) for row in rows}
    states = {(state.instance, state.minute) for found in instance_states(fleet) for state in found}
    expected = 4 * 600
    assert 0.8 * expected < len(states) < 0.92 * expected
    assert calls <= states


def test_a_first_minute_is_never_later_than_its_row() -> None:
    fleet = replace(FLEET, clock_skew=2, restarts_per_day=30.0)
    for rows in instance_minutes(fleet):
        assert all(row.first_minute <= row.minute for row in rows)
