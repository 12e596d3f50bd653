"""The messages of wire version 1, from a request down to one compilation; times are Unix seconds, durations seconds, sizes bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compilewatch.wire.sketch import Sketch

VERSION = 1
ACCEPTED_VERSIONS = (1,)

MAX_REPORTS = 32
MAX_WIRE_BYTES = 1 << 20
MAX_INFLATED_BYTES = 4 << 20
MAX_INFLATE_RATIO = 100
RATIO_CHECKED_AFTER = 64 << 10
MAX_DEPTH = 16
MAX_COMPILES = 200
MAX_FINDINGS = 200
MAX_TEXT = 512
MAX_REASON = 2048
MAX_WINDOW_AGE = 7 * 86400.0
MAX_JUDGED_WINDOW = 60.0

STAGE = "pipeline stage"
"""The component by which a rank declares that it runs another part of the model than others: only within a part do ranks have to agree."""

KERNEL = "kernel "
"""How the component begins by which a process says what kernel was the fastest for an operator and its inputs."""

GUARDS_LEFT_OUT = "guards left out"
"""The component by which a process says which filter leaves guards out of its code."""

EAGER_CAUSES = ("limit", "stance", "skip", "disabled", "error", "no_graph")
COMPILE_KINDS = ("first", "recompile", "empty", "backward", "autotune", "cuda_graph")
OUTCOMES = ("ok", "skipped", "raised", "suppressed")
FINDING_KINDS = (
    "graph_break",
    "guard",
    "fallback",
    "cache_miss",
    "cudagraph_skip",
    "compile_error",
    "cudagraph_rerecord",
    "alloc_retry",
    "compiled_nothing",
    "guards_left_out",
    "hook_too_late",
    "generator_not_compiled",
    "limit_not_in_force",
    "wrapper_not_entered",
    "golden_not_compared",
    "golden_cached_code",
    "golden_hidden_by_tf32",
    "aot_load_failed",
)
FACT_KINDS = (
    "mark",
    "ready",
    "latched_eager",
    "oom",
    "parity",
    "graph_hash",
    "kernel_choices",
    "command_receipt",
    "compiled_nothing",
    "reset",
    "ended",
)
CACHE_ANSWERS = ("hit", "miss", "bypass")
COLD_START = "cold start"
COLD_START_STAGES = (
    "before init",
    "import torch",
    "compile",
    "autotune",
    "cuda graphs",
    "import torch._dynamo",
    "first compiled call",
)
"""In the fact of a cold start: the stages that are no mark of the job's own."""
COLD_START_ENDS = ("first call", "ready")
OWN_MARKS = (COLD_START, "torch.compile", "agent switched itself off")
"""Marks that the agent makes itself."""
REASON_KINDS = ("guard", "race", "limit", "failure", "reset", "new code object", "failed again")
"""The last three: the same function of the same place is compiled again after `torch._dynamo.reset()`, as another code object, or
because it failed before."""
PATTERNS = ("one value", "alternates", "distinct values", "grows by one")
"""How what a guard compares with varies from one compilation to the next; a later one says more than an earlier one."""


def pattern_rank(pattern: str) -> int:
    """How much a pattern says; an unknown one nothing."""
    return PATTERNS.index(pattern) if pattern in PATTERNS else -1


MAX_VALUES = 8
"""Values that a finding names; `distinct` counts all of them."""
ROLES = ("worker", "parent", "data worker", "engine", "auxiliary")
"""What a process does in its job: one that serves or trains, the parent that forks them, a worker of a DataLoader, an engine's core, and
one that only helps. Only workers and engines are instances whose figures count from the start."""
HELPS_ALONE = "this process helps others of its job and compiles nothing"
"""Why a process of some roles cannot tell what compilers do: nothing is hidden there."""
DYNAMIC = ("automatic", "yes", "no")

SeqRange = tuple[int, int]
"""First and last sequence number of a window, both included; a merged window covers more than one."""


@dataclass(slots=True)
class Region:
    """Calls of one watched callable in one window, of one shape bucket and mode."""

    name: str
    calls: int
    bucket: str = ""
    mode: str = "default"
    runtime: str = "torch.compile"
    outermost: bool = True
    errors: int = 0
    items: float | None = None
    compiled: int = 0
    partial: int = 0
    eager_by: dict[str, int] = field(default_factory=dict)
    unknown: int = 0
    sampled: int = 0
    latency: Sketch | None = None
    gpu: Sketch | None = None
    warmup: Sketch | None = None
    """Calls that compiled or waited for a compilation before warm-up ended."""
    stalled: Sketch | None = None
    """Calls that compiled or waited for a compilation after warm-up ended; in no other sketch. None: the agent does not tell them apart."""


@dataclass(slots=True)
class Compile:
    """One compilation: a frame, its lazy backward, or what its code did at run time: an autotune, or the recording of CUDA graphs,
    which is no compilation. `seconds` holds `total` and exclusive phases."""

    at: float
    id: str
    kind: str
    outcome: str
    frame: str = ""
    file: str = ""
    line: int = 0
    reason: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    cache: dict[str, str] = field(default_factory=dict)
    saved: float | None = None
    new_peak: int | None = None
    in_request: bool = False
    reason_kind: str = ""
    """What `reason` is: a guard that failed, threads that raced on a cold function, the recompile limit, a failure; empty: no reason."""
    backend: str = ""
    mode: str = ""
    dynamic: str = ""
    """Whether sizes may vary: after the first change (`automatic`), from the start, never; empty: not known."""
    fullgraph: bool | None = None
    key: str = ""
    """The first characters of the key that the caches were asked for: the same in every process that asked for the same."""
    miss: str = ""
    """Why it was not in the cache, as far as the agent knows; names what differs, never a value."""
    entries: int | None = None
    """Cache entries that the code object holds afterwards."""
    limit: int | None = None
    """How many it may hold by the limit in force in the context that compiles; None where nothing limits it, or it is not known."""


@dataclass(slots=True)
class Finding:
    """A group of like events in one window; the count is exact, the text is the first sample."""

    kind: str
    text: str
    where: str = ""
    count: int = 1
    seconds: float = 0.0
    """What they cost together, where that is known."""
    values: list[str] = field(default_factory=list)
    """Values, classes or names that were met: the first ones, `MAX_VALUES` at most."""
    distinct: int = 0
    """How many different ones this process has met so far; 0: the finding is not about values."""
    pattern: str = ""
    """One of PATTERNS; empty: not known."""


@dataclass(slots=True)
class Device:
    """What one GPU holds, in bytes, `graph_pool` for recorded CUDA graphs; utilisation is a share between 0 and 1."""

    index: int
    allocated: int | None = None
    peak: int | None = None
    reserved: int | None = None
    utilisation: float | None = None
    graph_pool: int | None = None


@dataclass(slots=True)
class Gauges:
    """The last value seen in the window; None means the agent could not see it. `host_rss_slope` is bytes per hour."""

    devices: list[Device] = field(default_factory=list)
    host_rss: int | None = None
    workers_rss: int | None = None
    degraded_frames: int | None = None
    compiling_for: float | None = None
    """Seconds since the oldest compilation that still runs began; 0.0 when none does."""
    compiling_frame: str | None = None
    compiling_usual: float | None = None
    """Seconds the same frame took at most so far in this process."""
    host_rss_slope: float | None = None


@dataclass(slots=True)
class Fact:
    """Something certain that needs no statistics, such as a frame that latched to eager."""

    kind: str
    at: float
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Losses:
    """The agent's own loss account, cumulative since its start."""

    merged_windows: int = 0
    truncated_events: int = 0
    spool_errors: int = 0
    internal_errors: int = 0
    rejected_windows: int = 0
    """Windows that the server refused for good: their counts are nowhere else."""


@dataclass(slots=True)
class Report:
    """What one instance saw in one window `(start, end)`."""

    seq: SeqRange
    window: tuple[float, float]
    regions: list[Region] = field(default_factory=list)
    compiles: list[Compile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    gauges: Gauges = field(default_factory=Gauges)
    facts: list[Fact] = field(default_factory=list)
    losses: Losses = field(default_factory=Losses)


@dataclass(slots=True)
class Identity:
    """Who reports: one process with an agent. Components are hashes or versions, never values."""

    id: str
    started: float
    model: str
    version: str
    environment: str = "production"
    kind: str = "serving"
    job: str = ""
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    host: str = ""
    pid: int = 0
    gpu: str = ""
    gpu_count: int = 0
    gpu_capability: str = ""
    driver: str = ""
    torch: str = ""
    triton: str = ""
    cuda: str = ""
    python: str = ""
    agent: str = ""
    label: str = ""
    """What its operator calls it: a pod, a replica, a worker's number, or what `COMPILEWATCH_INSTANCE` says."""
    role: str = ""
    """One of ROLES; empty: not known, and then taken for a worker."""
    simulated: bool = False
    capabilities: dict[str, tuple[str, str]] = field(default_factory=dict)
    components: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Request:
    """The body of one POST: the sender's identity and up to 32 of its windows."""

    v: int
    sent: float
    instance: Identity
    reports: list[Report]
