"""Rollouts: models, versions and regressions of the simulated fleet."""

from __future__ import annotations

from dataclasses import dataclass, field

HISTORY_MINUTES = 24 * 60


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
LLM_CHAT = SimulatedModel(
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
)
VIT_EMBED = SimulatedModel(
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
)


def build_fleet(*, judged_minutes: int) -> tuple[SimulatedModel, ...]:
    """Builds three models. The newest version of `ranker` is slower and partly eager, since one
    minute less than `judged_minutes`."""
    shapes = Fault(1.31, 0.28, "score_batch", "ranker/score.py", 118, "candidates.size(0) == 96")
    ranker = SimulatedModel(
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
    )
    return ranker, LLM_CHAT, VIT_EMBED
