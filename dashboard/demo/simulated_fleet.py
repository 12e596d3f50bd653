"""Simulated fleet: its instances, and the report of one instance for one window.

Everything is a function of the start time and the instance, so a second start continues where the
first start stopped.
"""

from __future__ import annotations

import math
import random

from compilewatch.wire.messages import (
    COLD_START,
    COLD_START_ENDS,
    Compile,
    Device,
    Fact,
    Finding,
    Gauges,
    Identity,
    Region,
    Report,
)
from compilewatch.wire.sketch import Sketch

from dashboard.demo.rollouts import Fault, Rollout, SimulatedModel, build_fleet
from dashboard.demo.simulated_compilations import (
    list_recompiles,
    list_stalls,
    list_start_compiles,
)

__all__ = [
    "Fault",
    "Rollout",
    "SimulatedInstance",
    "SimulatedModel",
    "build_fleet",
    "build_instances",
    "stable_hash",
]

GIB = 1 << 30
RANKS_PER_HOST = 2


class SimulatedInstance:
    """One process of a rollout. Times are Unix seconds; `minute` counts since 1970."""

    def __init__(
        self, model: SimulatedModel, rollout: Rollout, number: int, start_minute: int
    ) -> None:
        self.model, self.rollout, self.number = model, rollout, number
        self.first_minute = start_minute - rollout.since
        self.tells = True
        """True if the agent reports stalled calls; an older agent counts them as warm-up."""
        self.last_minute = start_minute - rollout.until if rollout.until is not None else None
        name = f"{model.name}/{rollout.version}/{number}"
        # Host effects do not depend on the start time, so the demo always shows the same story.
        host = random.Random(name)
        self._host_effect = host.gauss(0.0, 0.006)
        self._phase = host.uniform(0.0, 60.0)
        self._compiling = rollout.compile_seconds * host.uniform(0.95, 1.1)
        self.rank = number % 10 if rollout.job else 0
        self._seed = f"{name}/{start_minute}"
        self.identity = self._build_identity()

    def _build_identity(self) -> Identity:
        model, rollout = self.model, self.rollout
        on_host = self.number // RANKS_PER_HOST if rollout.job else self.number
        rng = random.Random(self._seed)
        return Identity(
            id="".join(rng.choices("0123456789abcdefghjkmnpqrstvwxyz", k=26)),
            started=self.first_minute * 60.0 - self._compiling - 9.0,
            model=model.name,
            version=rollout.version,
            environment=rollout.environment,
            kind="training" if rollout.job else "serving",
            job=rollout.job,
            rank=self.rank,
            local_rank=self.rank % RANKS_PER_HOST if rollout.job else 0,
            world_size=rollout.instances if rollout.job else 1,
            host=f"gpu-{model.gpu.split()[-1].lower()}-"
            f"{stable_hash(model.name) % 40 + on_host:02d}",
            pid=1,
            gpu=model.gpu,
            gpu_count=1,
            torch=model.torch,
            triton="3.6.0",
            cuda="13.0",
            python="3.12.3",
            agent="simulator",
            simulated=True,
            capabilities={
                "compiled_calls": ("yes", ""),
                "compilations": ("yes", ""),
                "cuda_graph_skips": ("no", "simulated"),
            },
            components={
                "torch": model.torch,
                "triton": "3.6.0",
                "inductor_config epilogue_fusion": "4f1c9a2b",
                "cache folder": "b07e35d1",
            }
            | ({rollout.cold.component: rollout.cold.value} if rollout.cold else {}),
        )

    def report(self, *, seq: int, start: float, end: float) -> Report:
        """Builds the report of this instance for the window from `start` to `end`."""
        rng = random.Random(f"{self._seed}/{seq}")
        share = (end - start) / 60.0
        age = (start - self.first_minute * 60.0) / 60.0
        level = self.model.median * math.exp(
            self._host_effect + self._drift(start) + rng.gauss(0.0, 0.008)
        )
        regions = [
            self._region(rng, bucket, factor, level, share, age)
            for bucket, factor in self.model.buckets.items()
        ]
        starting = age < 1.0 and start <= self.first_minute * 60.0 + 1.0
        return Report(
            seq=(seq, seq),
            window=(start, end),
            regions=regions,
            compiles=self._compiles(rng, start)
            if starting and not self.rollout.eager
            else list_stalls(self.rollout.fault, regions, start, end),
            findings=self._findings() if starting and not self.rollout.eager else [],
            gauges=self._gauges(rng, age),
            facts=self._facts(start) if starting and not self.rollout.eager else [],
        )

    def _drift(self, at: float) -> float:
        day = 2 * math.pi * at / 86400.0
        return 0.03 * math.sin(day) + 0.006 * math.sin(2 * math.pi * (at / 3600.0) + self._phase)

    def _region(
        self, rng: random.Random, bucket: str, factor: float, level: float, share: float, age: float
    ) -> Region:
        calls = max(
            1,
            round(
                self.model.calls_per_minute
                * share
                / len(self.model.buckets)
                * rng.uniform(0.9, 1.1)
            ),
        )
        fault = self.rollout.fault if age >= 1.0 else Fault()
        stalls = round(calls * fault.stalled)
        steady = calls - stalls
        eager = round(steady * fault.eager * rng.uniform(0.9, 1.1))
        median = level * factor * fault.slower
        looked = 0 if self.rollout.eager else steady
        latency = Sketch.of(
            median * math.exp(rng.gauss(0.0, 0.12) + (rng.random() < 0.02) * rng.expovariate(4.0))
            for _ in range(steady)
        )
        stalled = (
            Sketch.of(median + fault.stall_seconds * rng.uniform(0.9, 1.1) for _ in range(stalls))
            if self.tells
            else None
        )
        return Region(
            name=self.model.region,
            bucket=bucket,
            mode="eager" if self.rollout.eager else "reduce-overhead",
            calls=calls,
            runtime="eager" if self.rollout.eager else "torch.compile",
            items=float(calls * 16),
            latency=latency,
            compiled=looked - eager,
            eager_by={"limit": eager} if eager else {},
            sampled=looked,
            stalled=stalled,
        )

    def _compiles(self, rng: random.Random, start: float) -> list[Compile]:
        return [
            *list_start_compiles(
                self.model, self.rollout, seconds=self._compiling, rng=rng, start=start
            ),
            *list_recompiles(self.model, self.rollout, rank=self.rank, rng=rng, start=start),
        ]

    def _findings(self) -> list[Finding]:
        place = f"{self.model.name}/features.py:61"
        found = [Finding("graph_break", "Tensor.item() called in a compiled region", place, 1)]
        fault = self.rollout.fault
        if fault.frame:
            kind = "guard" if fault.outcome == "ok" else "compile_error"
            found.append(Finding(kind, fault.guard, f"{fault.file}:{fault.line}", 7))
        return found

    def _facts(self, start: float) -> list[Fact]:
        facts = [
            Fact("ready", start, {"seconds": start - self.identity.started}),
            self._cold_start(start),
        ]
        fault = self.rollout.fault
        if fault.causes_eager_fallback:
            data = {
                "frame": fault.frame,
                "file": fault.file,
                "line": fault.line,
                "cause": "limit",
                "limit": 8,
                "reason": fault.guard,
            }
            facts.append(Fact("latched_eager", start + 20.0, data))
        return facts

    def _cold_start(self, end: float) -> Fact:
        """The cold start: nine seconds before the first compilation, then compilations until
        ready."""
        whole, tuning = self._compiling, self.rollout.cold.autotune if self.rollout.cold else 0.0
        compiling = whole - tuning
        stages = {
            "before init": [0.0, 0.4],
            "import torch": [0.4, 2.7],
            "weights loaded": [3.1, 4.2],
            "import torch._dynamo": [7.3, 1.3],
            "compile": [9.0, 0.95 * compiling],
            "autotune": [9.0 + 0.95 * compiling, tuning],
            "cuda graphs": [9.0 + tuning + 0.95 * compiling, 0.02 * compiling],
            "first compiled call": [9.0 + tuning + 0.97 * compiling, 0.01 * compiling],
        }
        shares = {"dynamo": 0.19, "aot": 0.09, "inductor": 0.52, "triton": 0.11}
        phases = {phase: share * compiling for phase, share in shares.items()} | (
            {"autotune": tuning} if tuning else {}
        )
        said = {
            "began": self.identity.started,
            "total": 9.0 + whole,
            "until": COLD_START_ENDS[1],
            "stages": {name: span for name, span in stages.items() if span[1]},
            "phases": phases,
            "unaccounted": 0.4 + 0.02 * compiling,
        }
        return Fact("mark", end, {"name": COLD_START, **said})

    def _gauges(self, rng: random.Random, age: float) -> Gauges:
        peak = int(self.model.memory * GIB * (1 + 0.004 * math.tanh(age / 60)))
        allocated = int(peak * rng.uniform(0.9, 0.95))
        device = Device(0, allocated, peak, int(peak * 1.06), rng.uniform(0.6, 0.8))
        eager = 1 if self.rollout.fault.causes_eager_fallback else 0
        return Gauges([device], int(rng.uniform(11.2, 11.5) * GIB), int(0.4 * GIB), eager, 0.0)


def stable_hash(text: str) -> int:
    """A number that is the same in every process, unlike hash()."""
    return sum(ord(letter) * (n + 7) for n, letter in enumerate(text))


def build_instances(
    models: tuple[SimulatedModel, ...], *, start_minute: int
) -> list[SimulatedInstance]:
    """Builds every instance of the fleet."""
    return [
        SimulatedInstance(model, rollout, rollout_number * 10 + n, start_minute)
        for model in models
        for rollout_number, rollout in enumerate(model.rollouts)
        for n in range(rollout.instances)
    ]
