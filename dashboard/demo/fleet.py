"""What the simulated fleet consists of, and what one of its instances reports for one window.

Everything is a function of the start time and the instance, so a second start continues where the first one stopped."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from compilewatch.wire.causes import OTHER_GRAPH, OTHER_INPUTS
from compilewatch.wire.report import COLD_START, COLD_START_ENDS, Compile, Device, Fact, Finding, Gauges, Identity, Region, Report
from compilewatch.wire.sketch import Sketch

GIB = 1 << 30
HISTORY_MINUTES = 24 * 60


@dataclass(frozen=True)
class Fault:
    """How a version is worse: calls take `slower` times as long, and `eager` of them run eager because `frame` latched."""

    slower: float = 1.0
    eager: float = 0.0
    frame: str = ""
    file: str = ""
    line: int = 0
    guard: str = ""


@dataclass(frozen=True)
class Rollout:
    """One version on some instances, from a number of minutes before the start until the end of the demo."""

    version: str
    instances: int
    since: int
    fault: Fault = Fault()
    compile_seconds: float = 30.0
    cached: float = 0.95


@dataclass(frozen=True)
class SimulatedModel:
    """One model: its region, how fast it is on its GPU, and its rollouts, oldest first."""

    name: str
    region: str
    gpu: str
    median: float
    calls_per_minute: int
    memory: float
    frames: tuple[str, ...]
    rollouts: tuple[Rollout, ...]
    buckets: dict[str, float] = field(default_factory=lambda: {"2^12": 1.0, "2^14": 1.9})


def fleet(*, judged_minutes: int) -> tuple[SimulatedModel, ...]:
    """Three models; the newest version of `ranker` is slower and partly eager, one minute short of `judged_minutes`."""
    shapes = Fault(1.31, 0.28, "score_batch", "ranker/score.py", 118, "candidates.size(0) == 96")
    return (
        SimulatedModel(
            "ranker", "score_batch", "NVIDIA H200", 0.014, 240, 30.4, ("score_batch", "embed_query", "merge_lists"),
            (Rollout("2026.11.2", 3, HISTORY_MINUTES), Rollout("2026.11.3", 3, judged_minutes - 1, shapes, 33.0)),
        ),
        SimulatedModel(
            "llm-7b-chat", "decode_step", "NVIDIA H200", 0.041, 120, 68.2, ("decode_step", "prefill"),
            (Rollout("2026.11.1", 2, HISTORY_MINUTES, compile_seconds=74.0), Rollout("2026.11.2", 2, 7 * 60, compile_seconds=71.0)),
        ),
        SimulatedModel(
            "vit-embed", "encode", "NVIDIA H100", 0.0042, 180, 6.1, ("encode",), (Rollout("2026.11.1", 1, 20 * 60, compile_seconds=12.0),),
        ),
    )  # fmt: skip


class SimulatedInstance:
    """One process of a rollout. Times are Unix seconds; `minute` counts since 1970."""

    def __init__(self, model: SimulatedModel, rollout: Rollout, number: int, start_minute: int) -> None:
        self.model, self.rollout, self.number = model, rollout, number
        self.first_minute = start_minute - rollout.since
        name = f"{model.name}/{rollout.version}/{number}"
        # Whatever the time of the start, the hosts differ alike: the story that is promised must not hang on luck.
        host = random.Random(name)
        self._host_effect = host.gauss(0.0, 0.006)
        self._phase = host.uniform(0.0, 60.0)
        self._seed = f"{name}/{start_minute}"
        rng = random.Random(self._seed)
        self.identity = Identity(
            id="".join(rng.choices("0123456789abcdefghjkmnpqrstvwxyz", k=26)),
            started=self.first_minute * 60.0 - rollout.compile_seconds - 9.0,
            model=model.name,
            version=rollout.version,
            host=f"gpu-{model.gpu.split()[-1].lower()}-{hash_number(model.name) % 40 + number:02d}",
            pid=1,
            gpu=model.gpu,
            gpu_count=1,
            torch="2.11.0",
            triton="3.6.0",
            cuda="13.0",
            python="3.12.3",
            agent="simulator",
            simulated=True,
            capabilities={"compiled_calls": ("yes", ""), "compilations": ("yes", ""), "cuda_graph_skips": ("no", "simulated")},
            components={"torch": "2.11.0", "triton": "3.6.0", "inductor_config epilogue_fusion": "4f1c9a2b", "cache folder": "b07e35d1"},
        )  # fmt: skip

    def report(self, *, seq: int, start: float, end: float) -> Report:
        """What this instance would send for the window from start to end."""
        rng = random.Random(f"{self._seed}/{seq}")
        share = (end - start) / 60.0
        age = (start - self.first_minute * 60.0) / 60.0
        level = self.model.median * math.exp(self._host_effect + self._drift(start) + rng.gauss(0.0, 0.008))
        regions = [self._region(rng, bucket, factor, level, share, age) for bucket, factor in self.model.buckets.items()]
        starting = age < 1.0 and start <= self.first_minute * 60.0 + 1.0
        return Report(
            seq=(seq, seq),
            window=(start, end),
            regions=regions,
            compiles=self._compiles(rng, start) if starting else [],
            findings=self._findings() if starting else [],
            gauges=self._gauges(rng, age),
            facts=self._facts(start) if starting else [],
        )

    def _drift(self, at: float) -> float:
        day = 2 * math.pi * at / 86400.0
        return 0.03 * math.sin(day) + 0.006 * math.sin(2 * math.pi * (at / 3600.0) + self._phase)

    def _region(self, rng: random.Random, bucket: str, factor: float, level: float, share: float, age: float) -> Region:
        calls = max(1, round(self.model.calls_per_minute * share / len(self.model.buckets) * rng.uniform(0.9, 1.1)))
        fault = self.rollout.fault if age >= 1.0 else Fault()
        eager = round(calls * fault.eager * rng.uniform(0.9, 1.1))
        median = level * factor * fault.slower
        latency = Sketch.of(median * math.exp(rng.gauss(0.0, 0.12) + (rng.random() < 0.02) * rng.expovariate(4.0)) for _ in range(calls))
        return Region(
            name=self.model.region, bucket=bucket, mode="reduce-overhead", calls=calls, items=float(calls * 16),
            compiled=calls - eager, eager_by={"limit": eager} if eager else {}, sampled=calls, latency=latency,
        )  # fmt: skip

    def _compiles(self, rng: random.Random, start: float) -> list[Compile]:
        at = start - self.rollout.compile_seconds
        found = []
        for n, frame in enumerate(self.model.frames):
            total = self.rollout.compile_seconds / len(self.model.frames) * rng.uniform(0.9, 1.1)
            hit = rng.random() < self.rollout.cached
            seconds = {"total": total, "dynamo": total * 0.2, "aot": total * 0.1, "inductor": total * 0.55, "triton": total * 0.12}
            at += total
            found.append(
                Compile(
                    at=at,
                    id=f"{n}/0",
                    frame=frame,
                    file=f"{self.model.name}/model.py",
                    line=40 + 60 * n,
                    kind="first",
                    outcome="ok",
                    seconds=seconds,
                    cache={"fx": "hit" if hit else "miss", "aot": "hit" if hit else "miss"},
                    saved=total if hit else None,
                    key=f"{self.model.name}-{frame}"[:16],
                    miss="" if hit else OTHER_GRAPH,
                )
            )
        found.extend(self._recompiles(rng, start))
        return found

    def _recompiles(self, rng: random.Random, start: float) -> list[Compile]:
        fault = self.rollout.fault
        if not fault.frame:
            return []
        return [
            Compile(
                at=start + k, id=f"0/{k}", frame=fault.frame, file=fault.file, line=fault.line, kind="recompile", outcome="ok",
                reason=f"{fault.guard} (actual {96 + 8 * k})", seconds={"total": rng.uniform(2.0, 4.0), "dynamo": 0.8, "inductor": 1.1},
                cache={"fx": "miss", "aot": "miss"}, in_request=True, miss=OTHER_INPUTS,
            )
            for k in range(1, 8)
        ]  # fmt: skip

    def _findings(self) -> list[Finding]:
        place = f"{self.model.name}/features.py:61"
        found = [Finding("graph_break", "Tensor.item() called in a compiled region", place, 1)]
        fault = self.rollout.fault
        if fault.frame:
            found.append(Finding("guard", fault.guard, f"{fault.file}:{fault.line}", 7))
        return found

    def _facts(self, start: float) -> list[Fact]:
        facts = [Fact("ready", start, {"seconds": start - self.identity.started}), self._cold_start(start)]
        fault = self.rollout.fault
        if fault.frame:
            data = {"frame": fault.frame, "file": fault.file, "line": fault.line, "cause": "limit", "limit": 8, "reason": fault.guard}
            facts.append(Fact("latched_eager", start + 20.0, data))
        return facts

    def _cold_start(self, end: float) -> Fact:
        """Nine seconds before the first compilation, then compilations until it is ready."""
        compiling = self.rollout.compile_seconds
        stages = {
            "before init": [0.0, 0.4],
            "import torch": [0.4, 2.7],
            "weights loaded": [3.1, 4.2],
            "import torch._dynamo": [7.3, 1.3],
            "compile": [9.0, 0.95 * compiling],
            "cuda graphs": [9.0 + 0.95 * compiling, 0.02 * compiling],
            "first compiled call": [9.0 + 0.97 * compiling, 0.01 * compiling],
        }
        shares = {"dynamo": 0.2, "aot": 0.1, "inductor": 0.55, "triton": 0.12}
        said = {
            "began": self.identity.started,
            "total": 9.0 + compiling,
            "until": COLD_START_ENDS[1],
            "stages": stages,
            "phases": {phase: share * compiling for phase, share in shares.items()},
            "unaccounted": 0.4 + 0.02 * compiling,
        }
        return Fact("mark", end, {"name": COLD_START, **said})

    def _gauges(self, rng: random.Random, age: float) -> Gauges:
        peak = int(self.model.memory * GIB * (1 + 0.004 * math.tanh(age / 60)))
        allocated = int(peak * rng.uniform(0.9, 0.95))
        device = Device(0, allocated, peak, int(peak * 1.06), rng.uniform(0.6, 0.8))
        eager = 1 if self.rollout.fault.frame else 0
        return Gauges([device], int(rng.uniform(11.2, 11.5) * GIB), int(0.4 * GIB), eager, 0.0)


def hash_number(text: str) -> int:
    """A number that is the same in every process, unlike hash()."""
    return sum(ord(letter) * (n + 7) for n, letter in enumerate(text))


def instances(models: tuple[SimulatedModel, ...], *, start_minute: int) -> list[SimulatedInstance]:
    """Every instance of the fleet."""
    return [
        SimulatedInstance(model, rollout, rollout_number * 10 + n, start_minute)
        for model in models
        for rollout_number, rollout in enumerate(model.rollouts)
        for n in range(rollout.instances)
    ]
