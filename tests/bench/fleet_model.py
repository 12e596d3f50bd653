"""A fleet model: the parameters of a simulated fleet of one model, and the instances it consists
of; numpy and scipy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Generator = np.random.Generator

GPU_SPEED = {"H100": 0.0, "A100": 0.45, "L40S": 0.9}
MODE_SPEED = {"default": 0.0, "max-autotune": -0.1}
BUCKETS = ("small", "large")


@dataclass(frozen=True)
class Fleet:
    """Parameters of the simulation; every effect is on the log of a latency unless stated
    otherwise."""

    seed: int = 0
    minutes: int = 720
    """Lifetime of the candidate."""
    sequential: bool = False
    """The candidate replaces the baseline host by host, `stagger` minutes apart; `baseline_per_gpu`
    is the number of hosts."""
    history: int = 0
    """Minutes of the baseline before the candidate."""
    phase: int = 0
    """Minute of the day of the deployment."""
    baseline_per_gpu: int = 3
    candidates: int = 1
    gpus: tuple[str, ...] = ("H100", "A100")
    candidate_gpus: tuple[str, ...] = ()
    """Empty: the candidate runs on the baseline's types in turn."""
    modes: tuple[str, ...] = ("default",)
    """Execution modes of the instances of each arm and GPU type, in turn."""
    calls_per_minute: float = 300.0
    host_sd: float = 0.030
    process_sd: float = 0.020
    minute_sd: float = 0.030
    minute_memory: float = 0.97
    fleet_sd: float = 0.010
    day_swing: float = 0.05
    traffic_swing: float = 0.6
    mix_swing: float = 0.15
    candidate_mix: float = 0.0
    """Additional share of large shapes on the candidate: a confounder."""
    call_sd: float = 0.25
    tail_chance: float = 0.02
    bursts_per_day: float = 2.0
    stagger: int = 20
    warm_up: int = 3
    eager_instance_chance: float = 0.01
    lone_eager_per_day: float = 0.0
    """Isolated eager calls of every instance."""
    looked_up: float = 1.0
    """Share of seconds in which calls are looked up. The execution mode of the other calls is
    unknown."""
    peak_climb: float = 0.0
    """The peak of a process is a running maximum over the needs of its minutes. This is the average
    excess of these needs over the usual need."""
    rack_sd: float = 0.0
    """A slowly drifting level that all hosts of a rack share; hosts alternate between two racks."""
    day_step: float = 0.0
    """Standard deviation of the level between days."""
    days: int = 0
    """Days before the minutes. The fleet's levels on them are known by hour."""
    weekend: float = 0.0
    """Speed-up of calls on two days of the week, which also have 60% fewer calls."""
    autoscale: bool = False
    """Every instance of an arm except the first runs only while there is enough traffic; each start
    is a new process on the same host."""
    error_share: float = 0.001
    error_sd: float = 0.5
    """Standard deviation of the instances' error rate, on its log."""
    error_bursts_per_day: float = 0.5
    items_per_call: float = 16.0
    fault: str = "none"
    """none, slow (negative: faster), tail, eager, error (size is a factor), fail (size is the share
    of calls that fail) or batches (calls take equally long with that share of their items
    missing)."""
    size: float = 0.0
    affected: float = 1.0
    """Share of the candidate's instances with the fault."""
    onset: int = 0
    """Minutes of an instance before its fault."""
    fault_bucket: str = ""
    """The shape bucket with the fault `slow`; empty: all."""
    fault_gpu: str = ""
    """The GPU type with the fault; empty: all."""
    fault_mode: str = ""
    """The execution mode with the fault; empty: all."""
    replaces: bool = False
    """Each candidate takes the place of a further baseline instance: this one runs on the same host
    until the candidate starts."""
    gap: int = 0
    """Minutes between the end of the baseline and the start of a candidate that replaces it."""
    nodes_known: bool = True
    """False: the agent reports pod names as hosts, so each process has a host of its own."""
    other_nodes: bool = False
    """A sequential candidate runs on other nodes than the baseline."""
    neighbours: float = 0.0
    """Another model runs on each node; this is the part of a node's slow-down that it has."""
    pairs: bool = False
    """Nodes have two GPUs: each candidate shares its node with a baseline instance."""
    traffic_share: float = 0.0
    """The candidate's share of all calls; 0: in proportion to instances."""
    ramp: int = 0
    """Minutes over which the candidate's share of all calls grows from 1% to 100%."""
    load_slope: float = 0.0
    """Effect of the log of an instance's share of calls, relative to equal shares."""
    restarts_per_day: float = 0.0
    """Restarts of each instance at random times."""
    redeploy: int = 0
    """Minutes after which each candidate restarts once; 0 means never."""
    settle: float = 0.0
    """A young process is slower by this much, which decays over `settle_minutes`."""
    settle_minutes: float = 20.0
    throttles_per_day: float = 0.0
    """A node slows down by 20 to 80%, 1 to 6 hours long."""
    power_caps_per_day: float = 0.0
    """All nodes of a GPU type slow down by 10 to 30%, 2 to 8 hours long."""
    rack_bursts_per_day: float = 0.0
    """All nodes of a rack slow down by 10 to 40%, 10 to 60 minutes long."""
    drift_sd: float = 0.0
    """A level of each node that drifts over a day."""
    sticky: float = 0.0
    """Amplitude of the daily change of call lengths within a bucket. Sticky users give each
    instance a phase of its own."""
    pauses_per_hour: float = 0.0
    """Minutes with a pause of the garbage collector in a process of average size."""
    storms_per_day: float = 0.0
    """Storms of errors and retries of 5 to 30 minutes on both arms."""
    clock_skew: int = 0
    """The clock of a node differs by at most this many minutes."""
    clock_steps_per_day: float = 0.0
    """The clock of a node steps by up to 10 minutes."""
    missing: float = 0.0
    """Share of instance minutes without a report."""
    gaps_per_day: float = 0.0
    """Gaps of 5 to 30 minutes in the reports of an instance."""
    latency: str = "lognormal"
    """lognormal, pareto (infinite variance) or bimodal (two modes, a factor of 3 apart, with nearly
    equal shares)."""

    @property
    def restarts(self) -> bool:
        """True if an instance may have several processes."""
        return bool(self.restarts_per_day or self.redeploy or self.autoscale)


@dataclass(frozen=True)
class Placed:
    """The instances of the fleet: arm, GPU type, mode, host, and first and last minute."""

    candidate: Bools
    gpu: list[str]
    mode: list[str]
    host: Ints
    start: Ints
    end: Ints


def autoregressive(rng: Generator, rows: int, minutes: int, memory: float, sd: float) -> Floats:
    """A slowly drifting level per row."""
    noise = rng.standard_normal((rows, minutes)) * sd * np.sqrt(1 - memory * memory)
    noise[:, 0] = rng.standard_normal(rows) * sd
    return np.asarray(lfilter([1.0], [1.0, -memory], noise, axis=1))
