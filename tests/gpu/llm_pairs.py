"""Time that the agent adds to a decode step of a small Llama that transformers compiles
automatically: pairs of processes, without and with the agent.

`python tests/gpu/llm_pairs.py [PAIRS] [ROUNDS] [SECONDS]` starts `programs/llm_decode.py` plainly
and under `compilewatch run`, PAIRS times each and all at once, since the start takes most of the
time. Then one process at a time decodes for SECONDS, alone on the GPU and on the same two
processors as every other process: the two of a pair alternate, in a new order in each of ROUNDS
rounds. A machine has fast and slow phases (on an H200, plain steps took 1.5 ms in some bursts and
2.3 ms in others, within one process), so the result of a process is the median over its short
bursts. The script prints each pair, then the median over pairs of the difference, in percent, of
the median, lowest tenth and mean step, and the 95% interval of that median."""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).parent
PROGRAM = str(HERE / "programs" / "llm_decode.py")
PLAIN = ["-W", "ignore"]
AGENT = ["-m", "compilewatch", "run", "--model", "llm", "--", sys.executable, "-W", "ignore"]
FIGURES = ("median_ms", "tenth_ms", "mean_ms")


class Decoder:
    """A process that decodes on request."""

    def __init__(self, words: list[str], cache: str) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(HERE.parents[1] / "agents"),
            "COMPILEWATCH_ENDPOINT": f"file:{cache}/reports.jsonl",
            "TORCHINDUCTOR_CACHE_DIR": cache,
            # otherwise each process starts one worker per processor
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(
            [sys.executable, *words, PROGRAM, "asked"], env=environment, **pipes
        )  # type: ignore[call-overload]

    def wait_until_ready(self) -> None:
        self._read()

    def measure(self, seconds: float) -> dict[str, float]:
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, float]:
        for line in self.process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise RuntimeError(f"the decoder ended with status {self.process.wait()}")

    def __enter__(self) -> Decoder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)


def measure_pair(plain: Decoder, other: Decoder, rounds: int, seconds: float) -> dict[str, float]:
    """The difference of `other` to `plain`, in percent: the median over rounds."""
    bursts: dict[Decoder, list[dict[str, float]]] = {plain: [], other: []}
    for _ in range(rounds):
        for one in random.sample([plain, other], 2):
            bursts[one].append(one.measure(seconds))
    usual = {
        one: {
            name: statistics.median(burst[name] for burst in bursts[one]) for name in bursts[one][0]
        }
        for one in bursts
    }
    changes = {
        name: round(100 * (usual[other][name] / usual[plain][name] - 1), 3) for name in FIGURES
    }
    return {
        **changes,
        "plain_median_ms": usual[plain]["median_ms"],
        "agent_cpu_percent": usual[other]["agent_cpu_percent"],
    }


def interval(values: list[float]) -> tuple[float, float]:
    """The order statistics that enclose the true median in 95 of 100 repetitions: the second and
    the ninth of ten."""
    ordered, outside, rank = sorted(values), 0.0, 0
    while (outside := outside + 2 * math.comb(len(values), rank) / 2 ** len(values)) <= 0.05:
        rank += 1
    return ordered[max(0, rank - 1)], ordered[-max(1, rank)]


def main() -> None:
    pairs, rounds, seconds = (
        int("".join(sys.argv[1:2]) or 10),
        int("".join(sys.argv[2:3]) or 12),
        float("".join(sys.argv[3:4]) or 0.4),
    )
    with tempfile.TemporaryDirectory() as cache:
        with Decoder(PLAIN, cache) as first:  # fills the cache
            first.wait_until_ready()
        with ExitStack() as stack:
            began = time.monotonic()
            started = [
                [stack.enter_context(Decoder(words, cache)) for words in (PLAIN, AGENT)]
                for _ in range(pairs)
            ]
            for one in (one for pair in started for one in pair):
                one.wait_until_ready()
            print(
                f"{2 * pairs} processes ready after {time.monotonic() - began:.0f} s",
                flush=True,
            )
            rows: list[dict[str, float]] = []
            for plain, watched in started:
                rows.append(measure_pair(plain, watched, rounds, seconds))
                print(json.dumps(rows[-1]), flush=True)
        for figure in FIGURES:
            values = [row[figure] for row in rows]
            print(
                json.dumps(
                    {figure: round(statistics.median(values), 3), "between": interval(values)}
                )
            )


if __name__ == "__main__":
    main()
