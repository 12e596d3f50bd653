"""The faults of one round and their times, drawn from a seed so that a round can be repeated."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.armed import FOLD_POINTS, POINTS
from tests.faults.job import CRASH_POINTS

SECONDS = 3.0
"""Seconds of recording and faults in a round."""

ALL_POINTS = (*POINTS, *CRASH_POINTS)
FULL_STACK = (
    "web killed", "web head killed", "web child killed", "worker killed", "worker head killed", "worker child killed",
    "redis flushed", "redis killed", "redis frozen", "postgresql killed",
)  # fmt: skip
EMBEDDED = ("everything killed",)
NETWORK = (
    "drop_the_answer",
    "replay",
    "reorder",
    "reset_in_the_answer",
    "reset_in_the_request",
    "truncated",
    "refuse",
    "delay",
    "busy",
)


@dataclass(frozen=True)
class Event:
    """One fault: seconds after the start of the round, downtime, and a number in [0, 1) for its
    choices."""

    at: float
    kind: str
    lasts: float
    chance: float


@dataclass(frozen=True)
class Agent:
    """One job: its options, its spool, and the time of its kill, 0 for never."""

    options: tuple[str, ...]
    spool: bool
    killed_at: float
    point: str = ""


@dataclass(frozen=True)
class Schedule:
    """One round."""

    agents: list[Agent]
    events: list[Event]
    armed: dict[str, int]
    network: Callable[[random.Random], str]
    plain: tuple[float, ...] = (0.0,)
    """The time at which each sender without an agent is killed, 0 for never."""


def schedule_of(number: int, database: str) -> Schedule:
    """The schedule of a round. The number is the seed, and selects one crash point in turn, so that
    each point occurs within sixteen rounds."""
    chance = random.Random(f"{number} {database}")
    kinds = FULL_STACK if database == "postgresql" else EMBEDDED
    events = [
        Event(
            chance.uniform(0.3, SECONDS),
            chance.choice(kinds),
            chance.uniform(0.0, 1.0),
            chance.random(),
        )
        for _ in range(chance.randint(2, 4) if database == "postgresql" else 1)
    ]
    turn = ALL_POINTS[number % len(ALL_POINTS)]
    points = {turn, chance.choice(ALL_POINTS), chance.choice(ALL_POINTS)}
    # Folds are rare compared with requests: a fold point that fires at its third pass may not fire
    # within a round.
    armed = {
        point: chance.randint(1, 1 if point in FOLD_POINTS else 3)
        for point in sorted(points)
        if point in POINTS
    }
    dying = [agent_that_dies_at(point, chance) for point in sorted(points) if point in CRASH_POINTS]
    agents = [
        Agent(lasting(SECONDS), True, 0.0),
        Agent(lasting(SECONDS), chance.random() < 0.5, chance.uniform(0.5, SECONDS)),
        Agent(lasting(chance.uniform(1.0, SECONDS)), chance.random() < 0.7, 0.0),
    ]
    share = chance.uniform(0.1, 0.6)
    plain = (0.0, chance.uniform(0.5, SECONDS))
    return Schedule(
        [*agents, *dying], sorted(events, key=lambda event: event.at), armed, network(share), plain
    )


def network(share: float) -> Callable[[random.Random], str]:
    """A plan in which this share of all requests meets a network fault."""
    return lambda chance: chance.choice(NETWORK) if chance.random() < share else ""


def lasting(seconds: float) -> tuple[str, ...]:
    """Options of a job that ends after `seconds`."""
    return ("--impatient", "--interval", "0.15", "--trouble", "0.05", "--seconds", f"{seconds:.2f}")


def agent_that_dies_at(point: str, chance: random.Random) -> Agent:
    """A job with a crash point in the agent; for a fork, the child dies and the job continues."""
    return Agent(
        (*lasting(SECONDS), "--crash", f"{point}:{chance.randint(1, 4)}", "--forks", "6"),
        True,
        0.0,
        point,
    )
