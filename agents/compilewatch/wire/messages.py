"""Messages of wire version 1, from a request to one compilation; times are Unix seconds, durations
seconds, sizes bytes.
"""

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
"""Component that declares the part of the model on this rank; only ranks with the same part must
agree.
"""

KERNEL = "kernel "
"""Prefix of the components that name the fastest kernel for an operator and its inputs."""

GUARDS_LEFT_OUT = "guards left out"
"""Component that names the filter that omits guards from the code."""

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
"""Stages of the `cold start` fact that are not marks of the job."""
COLD_START_ENDS = ("first call", "ready")
OWN_MARKS = (COLD_START, "torch.compile", "agent switched itself off")
"""Marks that the agent sets."""
REASON_KINDS = ("guard", "race", "limit", "failure", "reset", "new code object", "failed again")
"""The last three: the same function at the same place is compiled again after
`torch._dynamo.reset()`, as another code object, or after a failure.
"""
PATTERNS = ("one value", "alternates", "distinct values", "grows by one")
"""How the compared value of a guard changes between compilations; a later pattern is more specific.
"""


def pattern_rank(pattern: str) -> int:
    """Returns the rank of a pattern; the lowest for an unknown one."""
    return PATTERNS.index(pattern) if pattern in PATTERNS else -1


MAX_VALUES = 8
"""Maximum number of values in a finding; `distinct` counts all of them."""
ROLES = ("worker", "parent", "data worker", "engine", "auxiliary")
"""Roles of a process in its job: a worker serves or trains, a parent forks workers, a data worker
belongs to a DataLoader, an engine is an engine's core, and an auxiliary process only helps.

Only the metrics of workers and engines count from the start.
"""
HELPS_ALONE = "this process helps others of its job and compiles nothing"
"""Why a process of some roles reports no compiler capabilities: nothing is hidden there."""
DYNAMIC = ("automatic", "yes", "no")

SeqRange = tuple[int, int]
"""First and last sequence number of a window, inclusive; a merged window covers several numbers."""


@dataclass(slots=True)
class Region:
    """Calls of one watched region in one window, with one shape bucket and mode."""

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
    """Calls that compiled or waited for a compilation after warm-up ended; no other sketch contains
    them.

    None: the agent does not separate them.
    """


@dataclass(slots=True)
class Compile:
    """One compilation: a frame or its lazy backward. Also autotuning at run time and the recording
    of CUDA graphs, which are no compilations.

    `seconds` holds `total` and exclusive phases.
    """

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
    """Kind of `reason`: a failed guard, threads that raced on a cold function, the recompile limit,
    or a failure; empty: no reason.
    """
    backend: str = ""
    mode: str = ""
    dynamic: str = ""
    """Whether sizes may vary: after the first change (`automatic`), from the start, or never;
    empty: unknown.
    """
    fullgraph: bool | None = None
    key: str = ""
    """First characters of the cache key; equal in every process that looked up the same key."""
    miss: str = ""
    """Why the lookup missed, as far as the agent knows. It names the difference, never a value."""
    entries: int | None = None
    """Number of cache entries of the code object after the compilation."""
    limit: int | None = None
    """Limit of cache entries in the context of the compilation; None if there is no limit or it is
    unknown.
    """


@dataclass(slots=True)
class Finding:
    """A group of similar events in one window; the count is exact, the text is the first sample."""

    kind: str
    text: str
    where: str = ""
    count: int = 1
    seconds: float = 0.0
    """Their total cost in seconds, if known."""
    values: list[str] = field(default_factory=list)
    """The first values, classes or names, at most `MAX_VALUES`."""
    distinct: int = 0
    """Number of distinct values in this process so far; 0: the finding is not about values."""
    pattern: str = ""
    """One of PATTERNS; empty: unknown."""


@dataclass(slots=True)
class Device:
    """Memory of one GPU in bytes, `graph_pool` for recorded CUDA graphs; utilisation is a share
    between 0 and 1.
    """

    index: int
    allocated: int | None = None
    peak: int | None = None
    reserved: int | None = None
    utilisation: float | None = None
    graph_pool: int | None = None


@dataclass(slots=True)
class Gauges:
    """The last value in the window; None if the agent could not read it.

    `host_rss_slope` is bytes per hour.
    """

    devices: list[Device] = field(default_factory=list)
    host_rss: int | None = None
    workers_rss: int | None = None
    degraded_frames: int | None = None
    compiling_for: float | None = None
    """Seconds since the start of the oldest compilation in progress; 0.0 if there is none."""
    compiling_frame: str | None = None
    compiling_usual: float | None = None
    """Longest compilation of the same frame so far in this process, in seconds."""
    host_rss_slope: float | None = None


@dataclass(slots=True)
class Fact:
    """A confirmed fact that needs no statistics, such as the eager fallback of a frame."""

    kind: str
    at: float
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Losses:
    """The agent's own losses, cumulative since its start."""

    merged_windows: int = 0
    truncated_events: int = 0
    spool_errors: int = 0
    internal_errors: int = 0
    rejected_windows: int = 0
    """Windows that the server rejected permanently; nothing else contains their counts."""


@dataclass(slots=True)
class Report:
    """The observations of one instance in one window `(start, end)`."""

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
    """The reporting process.

    Components are hashes or versions, never values.
    """

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
    node: str = ""
    """The machine under the host, such as the Kubernetes node of a pod; empty: the host itself."""
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
    """The operator's name for the process: a pod, a replica, a worker's number, or
    `COMPILEWATCH_INSTANCE`.
    """
    role: str = ""
    """One of ROLES; empty: unknown, treated as a worker."""
    simulated: bool = False
    capabilities: dict[str, tuple[str, str]] = field(default_factory=dict)
    components: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Request:
    """The body of one POST: the sender's identity and up to 32 windows."""

    v: int
    sent: float
    instance: Identity
    reports: list[Report]
