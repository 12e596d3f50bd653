"""The programs of the ground truth: how each program starts, what it calls, and each explained
difference between agent and trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
COLD, WARM = "cold", "warm"
IN_EACH_RUN = {
    "first_compile",
    "recompile",
    "guards",
    "limit",
    "break_explicit",
    "unsupported",
    "backend_raises",
    "fullgraph_error",
    "training_step",
    "data_parallel",
    "regional",
    "threads",
    "every_way",
}
"""Programs that `make test` runs: each measure and each kind of start once. `make engines` runs all
programs."""


@dataclass(frozen=True)
class Case:
    """One program. `regions` are the watched callables with their calls in one process; the first
    items of generators are included."""

    name: str
    regions: dict[str, int]
    words: tuple[str, ...] = ()
    """The command line; empty: `compilewatch run -- python NAME.py`."""
    processes: int = 1
    explained: dict[str, str] = field(default_factory=dict)
    """By measure, or by measure and start as in `breaks (cold)`: why the agent's value must differ
    from the trace's."""

    def why(self, measure: str, start: str) -> str:
        """The explanation of a difference; empty if no difference is expected."""
        return self.explained.get(measure) or self.explained.get(f"{measure} ({start})", "")

    @property
    def command(self) -> tuple[str, ...]:
        """The words after `python`."""
        return self.words or ("-m", "compilewatch", "run", "--", "python", f"{self.name}.py")


NO_START = (
    "torch gives an attempt at the recompile limit an id and a record, and begins nothing: the "
    "trace has no dynamo_start for it"
)


def torchrun(name: str) -> tuple[str, ...]:
    return (
        "-m",
        "compilewatch",
        "run",
        "--",
        "torchrun",
        "--standalone",
        "--nproc-per-node",
        "2",
        f"{name}.py",
    )


CASES = (
    Case("first_compile", {"doubled": 3}),
    Case("recompile", {"scaled": 6}),
    Case("guards", {"Scale": 7}),
    Case("dynamic", {"by_itself": 3, "from_the_start": 3, "<lambda>": 1}),
    Case("limit", {"unpadded": 25}, explained={"compile ids": NO_START}),
    Case("break_print", {"talkative": 3}),
    Case("break_item", {"deciding": 3}),
    Case("break_explicit", {"stepped": 3}),
    Case("break_inlined", {"outer": 3}),
    Case("unsupported", {"selecting": 2, "addressing": 2}),
    Case("backend_raises", {"sine": 2}),
    Case("backend_suppressed", {"sine": 3}),
    Case("fullgraph_error", {"talkative": 2}),
    Case(
        "user_error",
        {"strict": 3},
        explained={
            "recompile reasons": "a failed recompilation is reported with its "
            "failure; the guard that led to "
            "it is a finding"
        },
    ),
    Case("training_step", {"Sequential": 4}),
    Case("lazy_backward", {"energy": 2}),
    Case(
        "optimizer",
        {"step": 3},
        explained={
            "breaks": "torch.optim breaks its own graphs on purpose: nothing that a user could mend"
        },
    ),
    Case("regional", {"Block": 12}),
    Case("nested", {"outer": 3, "inner": 1}),
    Case(
        "threads",
        {"shared": 16},
        explained={
            "compile ids": NO_START,
            "limits": "torch refuses each thread once; the agent reports once that the function runs "
            "eager from now on",
        },
    ),
    Case(
        "every_way",
        {
            "decorated": 2,
            "plain": 2,
            "<lambda>": 2,
            "Net": 2,
            "Other": 2,
            "method": 2,
            "decorated_method": 2,
        },
    ),
    Case(
        "as_module",
        {"step": 2},
        (
            "-m",
            "compilewatch",
            "run",
            "--",
            "python",
            "-O",
            "-X",
            "utf8=1",
            "-m",
            "as_module",
            "--twice",
        ),
    ),
    Case("data_parallel", {"DistributedDataParallel": 3}, torchrun("data_parallel"), processes=2),
    Case("fully_sharded", {"Linear": 6}, torchrun("fully_sharded"), processes=2),
    Case("generate", {"LlamaForCausalLM": 10}),
    Case("diffusion", {"Block": 16}),
    Case("max_autotune", {"projected": 3}),
    Case(
        "rl_loop",
        {"act": 12},
        explained={
            "recompiled ids": "frames without a graph are counted apart "
            "as empty, also when they are "
            "compiled again"
        },
    ),
    Case("custom_op", {"model": 3}),
    Case(
        "numpy_in_the_graph",
        {"traced": 3, "untraced": 3},
        explained={
            "breaks": "torch writes a break again when it cannot go on behind it and leaves the "
            "frame eager; the agent counts one"
        },
    ),
    Case("notebook", {"cell": 2}),
    Case(
        "watched_by_hand",
        {
            "function": 2,
            "method": 2,
            "coroutine": 5,
            "tokens": 2,
            "tokens/first item": 2,
            "stream": 1,
            "stream/first item": 1,
            "module": 3,
        },
        ("watched_by_hand.py",),
    ),
    Case("stance", {"step": 5, "nothing": 2, "around": 2}),
    Case("reset", {"broken": 3}),
)
