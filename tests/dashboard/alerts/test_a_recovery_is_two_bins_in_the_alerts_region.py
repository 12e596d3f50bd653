"""A recovery is two consecutive bins in the region of the alert that are significantly close to the
earlier level."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.alerts.models import Alert, AlertEvent
from dashboard.alerts.recovery_check import check_recovery
from dashboard.alerts.services import alerts_sync, rollbacks_watch
from dashboard.common import clock
from dashboard.fleet.models import Deployment, Series
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.test_a_roll_back_is_seen_and_its_recovery_watched import (
    calls,
    kinds,
    minutes_store,
    run,
)

BEFORE = [(slot, 0.010 * factor) for slot, factor in enumerate((1.0, 1.01, 0.99) * 4)]


def share_back(size: float, sd: float, trials: int = 2000) -> float:
    """How often six bins with this true change count as recovered, at this standard deviation of a
    bin."""
    rng = np.random.default_rng(3)
    draws = 0.01 * np.exp(rng.normal(0.0, sd, (trials, 18)))
    draws[:, 12:] *= 1.0 + size
    return (
        sum(
            check_recovery(list(enumerate(row[:12])), list(enumerate(row[12:])), late=True).answer
            == "back"
            for row in draws
        )
        / trials
    )


def test_one_lucky_bin_is_no_recovery() -> None:
    high = [(0, 0.0115), (1, 0.0101), (2, 0.0115), (3, 0.0114), (4, 0.0099), (5, 0.0115)]
    assert check_recovery(BEFORE, high, late=False).answer == "unknown"
    assert check_recovery(BEFORE, high, late=True).answer == "not_back"


def test_two_bins_with_a_gap_between_them_are_not_consecutive() -> None:
    assert check_recovery(BEFORE, [(0, 0.010), (2, 0.010)], late=True).answer == "unknown"
    assert check_recovery(BEFORE, [(1, 0.010), (2, 0.010)], late=False).answer == "back"


@pytest.mark.parametrize("sd", [0.02, 0.03, 0.05])
def test_a_level_that_is_still_ten_percent_higher_rarely_counts_as_recovered(sd: float) -> None:
    assert share_back(0.10, sd) <= 0.01


def test_a_recovered_level_is_detected() -> None:
    assert share_back(0.0, 0.02) >= 0.9 and share_back(0.0, 0.03) >= 0.7


def test_without_enough_earlier_bins_the_recovery_is_unknown() -> None:
    found = check_recovery(BEFORE[:2], [(0, 0.010), (1, 0.010)], late=True)
    assert (found.answer, found.before) == ("unknown", None)


@pytest.mark.django_db
def test_another_region_that_is_fast_is_no_recovery(
    fleet: Fleet, old: Deployment, new: Deployment, time: Time
) -> None:
    """`decode` takes most of the time and is as fast as before; the alert is about `forward`."""

    def busy(minutes: int) -> None:
        forward = Series.objects.filter(version=old.version, region="forward").get()
        values = {
            field: getattr(forward, field)
            for field in ("project", "version", "environment", "stratum", "bucket")
        }
        decode, _ = Series.objects.get_or_create(**values, region="decode")
        now = clock.minute_of(clock.unix())
        Series.objects.filter(pk=decode.pk).update(last_minute=now)
        minutes_store(decode, 1000, 0.050, range(now - minutes + 1, now + 1))

    calls(old, 100, minutes=60)
    busy(60)
    run(time, 20, (old, 50, 0.014), (new, 50, 0.019))
    fleet.say(new, "roll_back", baseline=old)
    alerts_sync()
    run(time, 10, (old, 50, 0.014), (new, 50, 0.019))
    run(time, 8, (old, 100, 0.019))
    rollbacks_watch()
    run(time, 34, (old, 100, 0.019))
    busy(44)
    rollbacks_watch()
    alert = Alert.objects.get()
    assert kinds(alert)[-1] == "level_not_back"
    assert "19\u00a0ms" in AlertEvent.objects.get(alert=alert, kind="level_not_back").text
