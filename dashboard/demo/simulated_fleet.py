"""Simulated fleet: its models, rollouts and instances, and the report of one instance for one
window.

Everything is a function of the start time and the instance, so a second start continues where the
first start stopped.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN, OTHER_GRAPH, OTHER_INPUTS
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

GIB = 1 << 30
HISTORY_MINUTES = 24 * 60
RANKS_PER_HOST = 2
MAX_STALLS = 4
"""Maximum compilations in a report; a real agent truncates them too."""


@dataclass(frozen=True)
class Fault:
    """Regression of a version.

    Calls take `slower` times as long. A share `eager` runs eager because `frame` reached the
    recompile limit. A share `stalled` waits `stall_seconds` for a compilation of `frame`, which
    ends as `outcome`.
    """

    slower: float = 1.0
    eager: float = 0.0
    frame: str = ""
    file: str = ""
    line: int = 0
    guard: str = ""
    stalled: float = 0.0
    stall_seconds: float = 0.6
    outcome: str = "ok"

    @property
    def causes_eager_fallback(self) -> bool:
        """True if `frame` recompiles too often and then runs eager until the process restarts."""
        return bool(self.frame) and not self.stalled


@dataclass(frozen=True)
class ColdStart:
    """A cold start that should have been warm: one changed component invalidates the caches."""

    component: str
    value: str
    autotune: float = 0.0


@dataclass(frozen=True)
class Rollout:
    """One version on some instances. `since` and `until` are minutes before the start of the demo;
    None means no end."""

    version: str
    instances: int
    since: int
    fault: Fault = Fault()
    compile_seconds: float = 30.0
    cached: float = 0.95
    cold: ColdStart | None = None
    environment: str = "production"
    eager: bool = False
    """True for a deliberate eager reference for the compiled calls."""
    until: int | None = None
    job: str = ""
    """Name of a training job with the instances as ranks; empty for serving."""
    apart: int | None = None
    """Rank that receives a shape unique to it and compiles once more."""


@dataclass(frozen=True)
class SimulatedModel:
    """One model: region, speed on its GPU, and rollouts, oldest first."""

    name: str
    region: str
    gpu: str
    median: float
    calls_per_minute: int
    memory: float
    frames: tuple[str, ...]
    rollouts: tuple[Rollout, ...]
    buckets: dict[str, float] = field(default_factory=lambda: {"2^12": 1.0, "2^14": 1.9})
    torch: str = "2.11.0"


EAGER_REFERENCE = Rollout(
    "eager reference",
    1,
    9 * 60,
    Fault(slower=1.62),
    compile_seconds=0.0,
    environment="benchmark",
    eager=True,
    until=8 * 60,
)


def build_fleet(*, judged_minutes: int) -> tuple[SimulatedModel, ...]:
    """Builds three models. The newest version of `ranker` is slower and partly eager, since one
    minute less than `judged_minutes`."""
    shapes = Fault(1.31, 0.28, "score_batch", "ranker/score.py", 118, "candidates.size(0) == 96")
    return (
        SimulatedModel(
            "ranker",
            "score_batch",
            "NVIDIA H200",
            0.014,
            240,
            30.4,
            ("score_batch", "embed_query", "merge_lists"),
            (
                Rollout("2026.11.2", 3, HISTORY_MINUTES),
                Rollout("2026.11.3", 3, judged_minutes - 1, shapes, 33.0),
            ),
        ),
        SimulatedModel(
            "llm-7b-chat",
            "decode_step",
            "NVIDIA H200",
            0.041,
            120,
            68.2,
            ("decode_step", "prefill"),
            (
                Rollout("2026.11.1", 2, HISTORY_MINUTES, compile_seconds=74.0),
                Rollout("2026.11.2", 2, 7 * 60, compile_seconds=71.0),
            ),
        ),
        SimulatedModel(
            "vit-embed",
            "encode",
            "NVIDIA H100",
            0.0042,
            180,
            6.1,
            ("encode",),
            (
                Rollout("2026.11.1", 1, 20 * 60, compile_seconds=12.0),
                Rollout(
                    "2026.11.1",
                    2,
                    5 * 60,
                    compile_seconds=74.0,
                    cached=0.0,
                    cold=ColdStart("triton", "3.6.1", 18.0),
                ),
                EAGER_REFERENCE,
            ),
        ),
    )


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
        on_host = number // RANKS_PER_HOST if rollout.job else number
        self._seed = f"{name}/{start_minute}"
        rng = random.Random(self._seed)
        self.identity = Identity(
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
            else self._stalls(regions, start, end),
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
        cold, fault = self.rollout.cold, self.rollout.fault
        at = start - self._compiling
        found = []
        for n, frame in enumerate(self.model.frames):
            total = (
                (self._compiling - (cold.autotune if cold else 0.0))
                / len(self.model.frames)
                * rng.uniform(0.9, 1.1)
            )
            hit = rng.random() < self.rollout.cached
            seconds = {
                "total": total,
                "dynamo": total * 0.2,
                "aot": total * 0.1,
                "inductor": total * 0.55,
                "triton": total * 0.12,
            }
            at += total
            found.append(
                Compile(
                    at=at,
                    id=f"{n}/0",
                    frame=frame,
                    file=fault.file if frame == fault.frame else f"{self.model.name}/model.py",
                    line=fault.line if frame == fault.frame else 40 + 60 * n,
                    kind="first",
                    outcome="ok",
                    seconds=seconds,
                    cache={"fx": "hit" if hit else "miss", "aot": "hit" if hit else "miss"},
                    saved=total if hit else None,
                    key=f"{cold.value if cold else self.model.name}-{frame}"[:16],
                    miss="" if hit else NO_EARLIER_RUN if cold else OTHER_GRAPH,
                )
            )
        if cold and cold.autotune:
            tuned = {"total": cold.autotune, "autotune": cold.autotune}
            file = f"{self.model.name}/model.py"
            found.append(
                Compile(
                    start,
                    "0/0",
                    "autotune",
                    "ok",
                    frame=self.model.frames[0],
                    file=file,
                    line=40,
                    seconds=tuned,
                )
            )
        found.extend(self._recompiles(rng, start))
        return found

    def _recompiles(self, rng: random.Random, start: float) -> list[Compile]:
        fault = self.rollout.fault
        if self.rollout.job and self.rank == self.rollout.apart:
            return [
                Compile(
                    at=start + 40.0,
                    id="0/1",
                    frame=self.model.frames[0],
                    file=f"{self.model.name}/model.py",
                    line=40,
                    kind="recompile",
                    outcome="ok",
                    reason="tokens.size(1) == 4096 (actual 3584)",
                    seconds={"total": 31.0, "dynamo": 6.0, "inductor": 19.0},
                    cache={"fx": "miss", "aot": "miss"},
                    miss=OTHER_INPUTS,
                )
            ]
        if not fault.causes_eager_fallback:
            return []
        return [
            Compile(
                at=start + k,
                id=f"0/{k}",
                frame=fault.frame,
                file=fault.file,
                line=fault.line,
                kind="recompile",
                outcome="ok",
                reason=f"{fault.guard} (actual {96 + 8 * k})",
                seconds={"total": rng.uniform(2.0, 4.0), "dynamo": 0.8, "inductor": 1.1},
                cache={"fx": "miss", "aot": "miss"},
                in_request=True,
                miss=OTHER_INPUTS,
            )
            for k in range(1, 8)
        ]

    def _stalls(self, regions: list[Region], start: float, end: float) -> list[Compile]:
        """The compilations that stalled calls of the window waited for, up to `MAX_STALLS`."""
        fault = self.rollout.fault
        stalled = min(
            sum(region.stalled.count for region in regions if region.stalled is not None),
            MAX_STALLS,
        )
        return [
            Compile(
                at=start + (end - start) * (k + 1) / (stalled + 1),
                id=f"0/{k}",
                frame=fault.frame,
                file=fault.file,
                line=fault.line,
                kind="recompile",
                outcome=fault.outcome,
                reason=fault.guard,
                reason_kind="guard",
                seconds={"total": fault.stall_seconds},
                cache={"fx": "miss", "aot": "miss"} if fault.outcome == "ok" else {},
                in_request=True,
                miss=OTHER_INPUTS,
            )
            for k in range(stalled)
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
