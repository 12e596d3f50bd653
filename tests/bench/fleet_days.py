"""The hourly levels of a simulated fleet on the days before its minutes, over all instances, as the
hourly tables keep them; numpy only. Levels of days, weekends and the swing of a day are those of
the minutes."""

from __future__ import annotations

import numpy as np

from dashboard.regressions.judge import InstanceMinute
from tests.bench.fleet_disturb import draw_days, number_days
from tests.bench.fleet_model import BUCKETS, GPU_SPEED, Fleet, autoregressive
from tests.bench.fleet_scale import weekends

HOUR, DAY = 60, 1440
POOL_SD = 0.015
"""Noise of the mean of an hour over the instances of a fleet, with its busy neighbours."""


def hourly_rows(fleet: Fleet) -> list[InstanceMinute]:
    """The rows of each hour of these days, oldest first; minutes count from the deployment."""
    if not fleet.days:
        return []
    rng = np.random.default_rng([fleet.seed, 40])
    hours = np.arange(-fleet.days * 24, 0)
    minutes = hours * HOUR
    day = 2 * np.pi * (minutes + fleet.phase) / DAY
    level = fleet.day_swing * np.sin(day - 1.5)
    # Levels of days come first in the stream that the minutes draw them from, without racks.
    steps = draw_days(np.random.default_rng([fleet.seed, 1]), fleet)
    level += steps[number_days(fleet, minutes) % len(steps)]
    level -= fleet.weekend * weekends(fleet, minutes + fleet.history)
    level += autoregressive(rng, 1, len(hours), 0.9, fleet.fleet_sd)[0]
    calls = HOUR * fleet.calls_per_minute * fleet.baseline_per_gpu
    found = []
    for gpu in sorted(set(fleet.gpus)):
        for number, bucket in enumerate(BUCKETS):
            drawn = level + GPU_SPEED[gpu] + rng.normal(0, POOL_SD, len(hours))
            middle = 0.008 * 2.5**number * np.exp(drawn)
            for minute, p50 in zip(minutes.tolist(), middle.tolist(), strict=True):
                found.append(
                    InstanceMinute(
                        instance=f"{gpu} {bucket}",
                        unit=f"{gpu} {bucket}",
                        arm="baseline",
                        stratum=(gpu, "default", "torch.compile", "1"),
                        region="forward",
                        bucket=bucket,
                        minute=minute,
                        first_minute=minute,
                        calls=int(calls),
                        p50=p50,
                        p99=1.9 * p50,
                        items=calls * fleet.items_per_call,
                        latency_sum=calls * p50,
                    )
                )
    return found
