"""A simulated fault changes only the instances, buckets, GPU types and minutes that have it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.bench.fleet_model import Fleet, Floats
from tests.bench.fleet_sim import first_faulty_minute, simulate

HISTORY = 60
FLEET = Fleet(seed=930_001, history=HISTORY, minutes=300, replaces=True, candidates=4, stagger=0)


def change(fleet: Fleet) -> Floats:
    """The change of the mean of p50, by running instance and bucket, against the same fleet without
    the fault."""
    usual = simulate(replace(fleet, fault="slow", size=0.0))
    found = simulate(fleet)
    return np.asarray(np.nanmean((found.p50 - usual.p50)[:10, HISTORY + 200 :], axis=1))


def test_a_slow_version_is_slow_on_all_candidates() -> None:
    fleet = replace(FLEET, fault="slow", size=0.2)
    found = change(fleet)
    assert np.allclose(found[6:], np.log(1.2), atol=0.01)
    assert np.allclose(found[:6], 0.0)


def test_a_faster_version_is_faster() -> None:
    fleet = replace(FLEET, fault="slow", size=-0.2)
    assert np.allclose(change(fleet)[6:], np.log(0.8), atol=0.01)


def test_one_bucket_is_slow() -> None:
    fleet = replace(FLEET, fault="slow", size=0.2, fault_bucket="large")
    found = change(fleet)[6:]
    assert np.allclose(found[:, 0], 0.0) and np.allclose(found[:, 1], np.log(1.2), atol=0.01)


def test_one_gpu_type_is_slow() -> None:
    fleet = replace(FLEET, fault="slow", size=0.2, fault_gpu="A100")
    drawn = simulate(fleet)
    expected = [
        np.log(1.2) if arm and gpu == "A100" else 0.0
        for arm, gpu in zip(drawn.candidate[:10], drawn.gpu[:10], strict=True)
    ]
    assert np.allclose(change(fleet)[:, 0], expected, atol=0.01)


def test_some_instances_are_slow() -> None:
    fleet = replace(FLEET, fault="slow", size=0.5, affected=0.25)
    found = change(fleet)[:, 0]
    assert (found > 0.3).sum() == 1 and np.isclose(found, 0.0).sum() == 9


@pytest.mark.parametrize("onset", [0, 180])
def test_a_fault_begins_at_its_onset(onset: int) -> None:
    fleet = replace(FLEET, fault="slow", size=0.5, onset=onset)
    usual, found = simulate(replace(fleet, size=0.0)), simulate(fleet)
    slow = np.nan_to_num(found.p50 - usual.p50)[6:10, :, 0].max(axis=0) > 0.3
    first = int(np.flatnonzero(slow)[0]) - HISTORY
    assert max(onset, 3) == first
    assert first_faulty_minute(fleet, found) == onset
    assert first_faulty_minute(FLEET, simulate(FLEET)) is None


def test_half_of_all_calls_fail() -> None:
    found = simulate(replace(FLEET, fault="fail", size=0.5))
    share = found.errors.sum(axis=(1, 2)) / found.calls.sum(axis=(1, 2))
    assert np.allclose(share[found.candidate], 0.5, atol=0.02)
    assert (share[~found.candidate] < 0.02).all()
