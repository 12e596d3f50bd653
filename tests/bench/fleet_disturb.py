"""Disturbances of a simulated fleet that are no fault: slow nodes, racks, days and young processes,
pauses, and storms of errors; numpy only.

Each kind draws from a random stream of its own, so that one more kind leaves the others as they
are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.bench.fleet_model import Fleet, Floats, Generator, Ints, Placed, autoregressive
from tests.bench.fleet_places import share_factor
from tests.bench.fleet_scale import processes, weekends

RACKS = 2
HOUR = 60
DAYS = 16


@dataclass
class Disturbed:
    """Arrays by instance and minute: the additional level, level of the tail and share of errors,
    the factor of calls, and the process with its first minute."""

    level: Floats
    tail: Floats
    errors: Floats
    traffic: Floats
    process: Ints
    started: Ints


def disturb(fleet: Fleet, placed: Placed, clock: Ints) -> Disturbed:
    """All disturbances of a fleet."""
    level, process, started = worsened(fleet, placed, clock)
    zero = np.zeros(level.shape)
    found = Disturbed(level, zero, zero, share_factor(fleet, placed, clock), process, started)
    if fleet.load_slope:
        found.level += fleet.load_slope * np.log(np.maximum(found.traffic, 0.01))
    found.level += slow_nodes(fleet, placed, len(clock))
    found.level += young(fleet, clock, started) + sticky_users(fleet, placed, clock)
    if fleet.pauses_per_hour:
        add_pauses(np.random.default_rng([fleet.seed, 15]), fleet, found)
    if fleet.storms_per_day:
        add_storms(np.random.default_rng([fleet.seed, 16]), fleet, found)
    return found


def worsened(fleet: Fleet, placed: Placed, clock: Ints) -> tuple[Floats, Ints, Ints]:
    """The level of racks, days, restarted processes and weekends, and the process of each instance
    in each minute with its first minute."""
    rng = np.random.default_rng([fleet.seed, 1])
    level = np.zeros((len(placed.gpu), len(clock)))
    if fleet.rack_sd:
        level += autoregressive(rng, RACKS, len(clock), 0.99, fleet.rack_sd)[placed.host % RACKS]
    if fleet.day_step:
        level += draw_days(rng, fleet)[number_days(fleet, clock - fleet.history) % DAYS][None]
    process, started = processes(fleet, placed, clock)
    if fleet.restarts:
        level += np.take_along_axis(
            rng.normal(0, fleet.process_sd, (len(placed.gpu), int(process.max()) + 1)),
            process,
            axis=1,
        )
    return level - fleet.weekend * weekends(fleet, clock)[None], process, started


def draw_days(rng: Generator, fleet: Fleet) -> Floats:
    """The level of each of DAYS days."""
    return rng.normal(0, fleet.day_step, DAYS)


def number_days(fleet: Fleet, minutes: Ints) -> Ints:
    """The number of the day of each minute after the deployment."""
    return (minutes + fleet.phase) // 1440


def spells(
    rng: Generator, rows: int, minutes: int, per_day: float, length: tuple[int, int]
) -> list[tuple[int, slice]]:
    """Spells at random times, each with its row and a length between two numbers of minutes."""
    found = []
    for row in range(rows):
        for _ in range(rng.poisson(per_day * minutes / 1440)):
            start = int(rng.integers(0, minutes))
            found.append((row, slice(start, start + int(rng.integers(*length)))))
    return found


def slow_nodes(fleet: Fleet, placed: Placed, minutes: int) -> Floats:
    """Throttled nodes, power caps of GPU types, bursts of racks, and drifting nodes."""
    nodes = int(placed.host.max()) + 1
    of_node, of_rack = np.zeros((nodes, minutes)), np.zeros((RACKS, minutes))
    types = sorted(set(placed.gpu))
    of_type = np.zeros((len(types), minutes))
    for number, rows, per_day, length, slower in (
        (10, of_node, fleet.throttles_per_day, (HOUR, 6 * HOUR), (1.2, 1.8)),
        (11, of_type, fleet.power_caps_per_day, (2 * HOUR, 8 * HOUR), (1.1, 1.3)),
        (12, of_rack, fleet.rack_bursts_per_day, (10, HOUR), (1.1, 1.4)),
    ):
        rng = np.random.default_rng([fleet.seed, number])
        for row, when in spells(rng, len(rows), minutes, per_day, length):
            rows[row, when] += np.log(rng.uniform(*slower))
    if fleet.drift_sd:
        rng = np.random.default_rng([fleet.seed, 13])
        of_node += autoregressive(rng, nodes, minutes, 0.999, fleet.drift_sd)
    kinds = [types.index(gpu) for gpu in placed.gpu]
    return np.asarray(of_node[placed.host] + of_type[kinds] + of_rack[placed.host % RACKS])


def young(fleet: Fleet, clock: Ints, started: Ints) -> Floats:
    """The excess level of processes that started recently."""
    age = np.maximum(clock[None] - started, 0)
    return np.asarray(fleet.settle * np.exp(-age / fleet.settle_minutes))


def sticky_users(fleet: Fleet, placed: Placed, clock: Ints) -> Floats:
    """The daily change of call lengths, with a phase of its own for each instance."""
    rng = np.random.default_rng([fleet.seed, 14])
    phase = rng.uniform(0, 2 * np.pi, len(placed.gpu))
    return np.asarray(fleet.sticky * np.sin(2 * np.pi * clock[None] / 1440 + phase[:, None]))


def add_pauses(rng: Generator, fleet: Fleet, found: Disturbed) -> None:
    """Pauses of the garbage collector: one long call and a few delayed ones in a minute. Processes
    pause at different rates."""
    count, minutes = found.level.shape
    rate = fleet.pauses_per_hour / HOUR * rng.gamma(4.0, 0.25, count)
    paused = rng.random((count, minutes)) < rate[:, None]
    found.tail = found.tail + paused * rng.uniform(0.3, 1.2, (count, minutes))
    found.level += paused * 0.02


def add_storms(rng: Generator, fleet: Fleet, found: Disturbed) -> None:
    """Storms of all instances of both arms: failed calls, retries, and slower calls."""
    count, minutes = found.level.shape
    errors, traffic = np.zeros((count, minutes)), np.ones((count, minutes))
    for _, when in spells(rng, 1, minutes, fleet.storms_per_day, (5, 30)):
        each = rng.uniform(0.7, 1.3, count)[:, None]
        failed = rng.uniform(0.05, 0.30)
        errors[:, when] += failed * each
        traffic[:, when] *= 1 + 2 * failed * each
        found.level[:, when] += failed * 0.5 * each
    found.errors, found.traffic = found.errors + errors, found.traffic * traffic
