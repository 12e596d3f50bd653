"""Runbook steps by kind of alert: what to do, in order, with commands to copy; uses no database.

A runbook is useful without an edit. The owners' own text replaces the command that sends traffic
back, because only the owners know their deployment tool."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

RunbookKind = str
KINDS: dict[RunbookKind, str] = {
    "slower": "slower calls",
    "eager": "eager calls",
    "errors": "failed calls",
    "memory": "memory",
    "cold_start": "cold start",
    "cache": "cache misses",
    "stalled": "stalled calls",
    "parity": "wrong results",
    "ranks": "rank divergence",
    "silence": "silence",
}
"""Each kind of runbook with its name."""

_KIND_OF = {
    **dict.fromkeys(("p50", "p95", "p99", "gpu_p50", "gpu_p95", "gpu_p99"), "slower"),
    **dict.fromkeys(("throughput", "traffic"), "slower"),
    **dict.fromkeys(("eager", "latched_eager", "compiled_nothing", "budget_burning"), "eager"),
    "errors": "errors",
    **dict.fromkeys(("gpu_memory", "host_memory", "leak", "out_of_memory"), "memory"),
    **dict.fromkeys(("cold_start", "compile_time"), "cold_start"),
    **dict.fromkeys(("cache", "cache_hit_rate"), "cache"),
    **dict.fromkeys(("stalled", "stalled_time", "stalled_calls"), "stalled"),
    **dict.fromkeys(("recompiles", "stuck_compiling"), "stalled"),
    **dict.fromkeys(("parity", "shadow_parity", "non_finite"), "parity"),
    "ranks_diverged": "ranks",
}
RECORDER = (
    "export TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/tmp/nccl_trace_rank_"
)
MARK_DYNAMIC = "torch._dynamo.mark_dynamic(tokens, 1)"
_DYNAMIC_CALL = re.compile(r"torch\._dynamo\.mark_dynamic\([^)]*\)")


@dataclass(frozen=True)
class RunbookStep:
    """One step: an imperative title, one sentence, and at most one command. `page` names the page
    of the dashboard that shows more; `written` is the text of the owners, `address` their page."""

    title: str
    text: str = ""
    command: str = ""
    done: bool = False
    page: str = ""
    written: str = ""
    address: str = ""


@dataclass(frozen=True)
class RunbookFacts:
    """The values that a runbook fills in; an empty value is not known."""

    model: str
    version: str
    baseline: str = ""
    roll_back: bool = False
    """True for a ROLL BACK alert; otherwise a person decides first."""
    moved: str = ""
    """Current traffic as text, such as `50% of calls run 2026.11.3`."""
    level: str = ""
    """The level to recover, such as `p50 must return to 19.3 ms`."""
    host: str = ""
    rank: int | None = None
    pid: int | None = None
    job: str = ""
    frame: str = ""
    cause: str = ""
    fix: str = ""
    """One line of code that removes the cause."""
    written: str = ""
    address: str = ""
    rolled_back: bool = False
    recovery: str = ""
    """Kind of the event that states the recovery; empty until it is known."""


def choose_runbook_kind(metrics: Sequence[str]) -> RunbookKind:
    """The kind of the first metric or fact that has a runbook, the most important one first."""
    return next((_KIND_OF[name] for name in metrics if name in _KIND_OF), "slower")


def build_runbook_steps(kind: RunbookKind, facts: RunbookFacts) -> list[RunbookStep]:
    """The steps of a runbook; the owners' text comes first, in the step that routes traffic back or
    as a step of its own. Silence has no version to leave, so their text does not apply."""
    steps = _BUILDERS[kind](facts)
    if kind == "silence" or not (facts.written or facts.address):
        return steps
    route = _route_back(facts)
    if route in steps:
        command = "" if facts.written else route.command
        own = replace(
            route,
            text=_moved(facts) if facts.written else route.text,
            command=command,
            written=facts.written,
            address=facts.address,
        )
        return [own, *(step for step in steps if step != route)]
    own = RunbookStep("Follow the owners’ runbook", written=facts.written, address=facts.address)
    return [own, *steps]


def _workload(facts: RunbookFacts) -> str:
    return shlex.quote(f"deployment/{facts.model}")


def _route_back(facts: RunbookFacts) -> RunbookStep:
    assumed = "The command assumes a Kubernetes deployment named after the model."
    return RunbookStep(
        f"Route traffic back to {facts.baseline or 'the previous version'}",
        " ".join(filter(None, (_moved(facts), assumed))),
        f"kubectl rollout undo {_workload(facts)}",
        done=facts.rolled_back,
    )


def _moved(facts: RunbookFacts) -> str:
    return f"{facts.moved}." if facts.moved else ""


def _decide(facts: RunbookFacts) -> RunbookStep:
    return RunbookStep(
        "Review the evidence",
        "WATCH: likely regression, not enough evidence to roll back."
        if facts.baseline
        else f"{facts.version} has no baseline version.",
        page="compare" if facts.baseline else "model",
    )


def _confirm(facts: RunbookFacts) -> list[RunbookStep]:
    recovery = {
        "level_back": "Recovered.",
        "level_not_back": "Not recovered: check the hosts.",
        "level_unknown": "Unknown: too few calls to compare.",
    }.get(facts.recovery, "This page reports the recovery. Not recovered in time? Check the hosts.")
    level = f"{facts.level} within 30\u00a0min. " if facts.level and not facts.recovery else ""
    return [
        RunbookStep(
            "Confirm that traffic moved",
            "The rollback was detected." if facts.rolled_back else "Detected automatically.",
            f"kubectl rollout status {_workload(facts)}",
            done=facts.rolled_back,
        ),
        RunbookStep(
            "Confirm recovery (up to 30\u00a0min)",
            level + recovery,
            done=facts.recovery == "level_back",
        ),
    ]


def _roll_back_steps(facts: RunbookFacts) -> list[RunbookStep]:
    """The steps of a rollback; for WATCH, after a decision."""
    first = [] if facts.roll_back else [_decide(facts)]
    return [*first, _route_back(facts), *_confirm(facts)]


def _fix(facts: RunbookFacts) -> RunbookStep:
    return RunbookStep(
        "Fix before redeploying",
        facts.cause or "No known cause yet. Check the findings of this version.",
        facts.fix,
        page="findings",
    )


def _slower(facts: RunbookFacts) -> list[RunbookStep]:
    return [*_roll_back_steps(facts), _fix(facts)]


def _eager(facts: RunbookFacts) -> list[RunbookStep]:
    restart = RunbookStep(
        "Or restart to compile again",
        "An eager fallback lasts until the restart. It returns if the same inputs return.",
        f"kubectl rollout restart {_workload(facts)}",
    )
    return [*_roll_back_steps(facts), restart, _fix(facts)]


def _errors(facts: RunbookFacts) -> list[RunbookStep]:
    logs = RunbookStep(
        "Read the errors",
        "The first exception of each process is the most useful one.",
        f"kubectl logs {_workload(facts)} --all-containers --prefix --since=1h",
    )
    return [*_roll_back_steps(facts), logs, _fix(facts)]


def _memory(facts: RunbookFacts) -> list[RunbookStep]:
    room = RunbookStep(
        "Check the free memory",
        f"On {facts.host or 'an affected host'}. A process that reaches the limit is killed.",
        "nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv",
        page="instances",
    )
    snapshot = RunbookStep(
        "Record what holds the memory",
        "In one process: the snapshot opens at pytorch.org/memory_viz.",
        "torch.cuda.memory._record_memory_history(); "
        "torch.cuda.memory._dump_snapshot('memory.pickle')",
    )
    return [room, *_roll_back_steps(facts), snapshot]


def _cold_start(facts: RunbookFacts) -> list[RunbookStep]:
    pause = RunbookStep(
        "Pause the rollout",
        "Instances of the earlier version keep serving while new instances compile.",
        f"kubectl rollout pause {_workload(facts)}",
    )
    decide = [] if facts.roll_back else [_decide(facts)]
    return [pause, *_cache_steps(facts), *decide, _route_back(facts)]


def _cache_steps(facts: RunbookFacts) -> list[RunbookStep]:
    model = shlex.quote(facts.model)
    return [
        RunbookStep(
            "Find what changed the cache key",
            "On a host of the model. The command lists each difference from the last run.",
            f"compilewatch cache-check --model {model}",
            page="compiles",
        ),
        RunbookStep(
            "Save a warm cache",
            "Run your warm-up program once on the same GPU type and torch.",
            f"compilewatch cache save --model {model} warm.cache -- python warm_up.py",
        ),
        RunbookStep(
            "Load the cache before each start",
            "The file is refused if torch, Triton, CUDA, GPU or Python differ.",
            "compilewatch cache load warm.cache",
        ),
    ]


def _cache(facts: RunbookFacts) -> list[RunbookStep]:
    return [*_cache_steps(facts), _decide(facts), _route_back(facts)]


def _stalled(facts: RunbookFacts) -> list[RunbookStep]:
    stacks = (
        [
            RunbookStep(
                "Dump the stack of a process that waits",
                f"Process {facts.pid} on {facts.host or 'its host'}.",
                _dump(facts),
            )
        ]
        if facts.pid is not None
        else []
    )
    reason = RunbookStep(
        "Log the reason of each compilation",
        "Starts the instances again: each recompilation is logged with its failed guard.",
        f"kubectl set env {_workload(facts)} TORCH_LOGS=recompiles",
        page="compiles",
    )
    return [*_roll_back_steps(facts), *stacks, reason, _fix(facts)]


def _parity(facts: RunbookFacts) -> list[RunbookStep]:
    eager = RunbookStep(
        "Or serve eager until it is fixed",
        "Slower and correct: the variable switches compilation off after a restart.",
        f"kubectl set env {_workload(facts)} TORCHDYNAMO_DISABLE=1",
    )
    minify = RunbookStep(
        "Find the smallest graph that is wrong",
        "Run the failing batch with these variables. torch writes a program with the fault.",
        "export TORCHDYNAMO_REPRO_AFTER=aot TORCHDYNAMO_REPRO_LEVEL=4",
        page="parity",
    )
    return [*_roll_back_steps(facts), eager, minify]


def _dump(facts: RunbookFacts) -> str:
    dump = f"py-spy dump --native --pid {'PID' if facts.pid is None else facts.pid}"
    return f"ssh {shlex.quote(facts.host)} {dump}" if _is_host(facts.host) else dump


def _is_host(name: str) -> bool:
    """A name that ssh takes as a host: a leading dash would be an option."""
    return bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name))


def _ranks(facts: RunbookFacts) -> list[RunbookStep]:
    odd = f"rank {facts.rank}" if facts.rank is not None else "the rank that differs"
    job = f"job {facts.job}" if facts.job else "the job"
    requeue = f"scontrol requeue {facts.job}" if facts.job.isascii() and facts.job.isdigit() else ""
    call = _DYNAMIC_CALL.search(facts.fix)
    return [
        RunbookStep(
            "Check whether the job still makes progress",
            "Ranks wait for each other in collectives. If no rank finishes a step within the "
            "collective timeout (10\u00a0min by default with NCCL), the job hangs.",
            page="ranks",
        ),
        RunbookStep(
            f"Dump the stacks of {odd} and of another rank",
            f"On {facts.host or 'its host'}; compare where the two ranks wait.",
            _dump(facts),
        ),
        RunbookStep(
            "Read the NCCL flight recorder",
            "A job that started with these variables writes the last collectives of each rank at a "
            "timeout. Otherwise set them before the restart.",
            RECORDER,
        ),
        RunbookStep(
            "Restart the job if it hangs",
            f"Stop all ranks of {job} and start from the last checkpoint. A restart of one rank "
            "alone does not help.",
            requeue,
        ),
        RunbookStep(
            "Let all ranks compile the same graph",
            (f"`{facts.frame}` was compiled differently. " if facts.frame else "")
            + "An input whose size differs between ranks is the usual reason. Mark that dimension "
            "dynamic before the first call, on every rank.",
            call[0] if call else MARK_DYNAMIC,
        ),
    ]


def _silence(facts: RunbookFacts) -> list[RunbookStep]:
    return [
        RunbookStep(
            "Check this dashboard",
            "Health shows whether reports arrive. If other projects are late too, the cause is "
            "this dashboard.",
            page="health",
        ),
        RunbookStep(
            "Check the network from a host to this dashboard",
            "The agent keeps its reports until they arrive.",
            "compilewatch doctor",
        ),
        RunbookStep(
            "Check the processes",
            "A killed process cannot report its end. Check for a rollout, a scale-down or lost "
            "hosts.",
            "kubectl get pods --all-namespaces --field-selector=status.phase!=Running",
            page="silent",
        ),
        RunbookStep(
            "Resolve the alert if the end was planned",
            "The alert resolves automatically when more than half of the instances report again.",
        ),
    ]


_BUILDERS: dict[RunbookKind, Callable[[RunbookFacts], list[RunbookStep]]] = {
    "slower": _slower,
    "eager": _eager,
    "errors": _errors,
    "memory": _memory,
    "cold_start": _cold_start,
    "cache": _cache,
    "stalled": _stalled,
    "parity": _parity,
    "ranks": _ranks,
    "silence": _silence,
}
assert set(_BUILDERS) == set(KINDS) >= set(_KIND_OF.values())
