"""Records pairs of versions in parallel: the serving example unchanged and with each of its faults,
on all GPUs of a machine at once.

`PYTHONPATH=agents python tests/gpu/record_pairs.py FOLDER [--seconds 480] [--device cpu] [--pairs
same,shapes]` writes one file per pair, `FOLDER/PAIR.jsonl.gz`, which `compilewatch replay` sends to
a dashboard. The caches are warm for all pairs except `cold-cache`; the older version starts a
minute before the newer one, and all end together. The host name is replaced."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVE = ROOT / "agents/examples/serve.py"
GRAPHS = ("--mode", "reduce-overhead")
PAIRS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "same": (GRAPHS, GRAPHS),
    "slow": (GRAPHS, (*GRAPHS, "--fault", "slow")),
    "graph-break": (GRAPHS, (*GRAPHS, "--fault", "graph-break")),
    "shapes": (GRAPHS, (*GRAPHS, "--fault", "shapes")),
    "cold-cache": (GRAPHS, (*GRAPHS, "--fault", "cold-cache")),
    "mode": (GRAPHS, ("--mode", "default")),
}
BETWEEN = 62.0
"""Seconds from the start of the older version to the start of the newer one: a whole minute, so
that the order is unambiguous."""
TO_END = 20.0
HOST = "gpu-host-1"
Job = subprocess.Popen[bytes]


def serve(
    folder: Path, options: argparse.Namespace, arguments: Sequence[str], **variables: str
) -> Job:
    """One process of the example; without a recording file, its agent is off."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    environment |= {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    environment |= {
        "PYTHONPATH": str(ROOT / "agents"),
        "COMPILEWATCH_INTERVAL": str(options.interval),
        **variables,
    }
    command = [
        sys.executable,
        str(SERVE),
        "--device",
        options.device,
        "--backend",
        options.backend,
        "--rate",
        str(options.rate),
        *arguments,
    ]
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output)


def warm(folder: Path, options: argparse.Namespace, pairs: Iterable[str]) -> None:
    """Compiles all code of the versions once, without the agent."""
    programs = {
        tuple(arguments)
        for pair in pairs
        for arguments in PAIRS[pair]
        if "cold-cache" not in arguments
    }
    for job in [
        serve(folder, options, [*arguments, "--seconds", "1"]) for arguments in sorted(programs)
    ]:
        job.wait()


def version(folder: Path, options: argparse.Namespace, pair: str, number: int) -> list[Job]:
    """Starts the instances of one version of a pair, each on the next GPU."""
    jobs = []
    for instance in range(options.instances):
        recorded = folder / f"{pair}-{number}-{instance}.jsonl"
        seed = str(10 * number + instance)
        variables = {
            "COMPILEWATCH_ENDPOINT": f"file:{recorded}",
            "CUDA_VISIBLE_DEVICES": str(instance % options.gpus),
        }
        arguments = [
            "--model",
            pair,
            "--version",
            str(number),
            "--seed",
            seed,
            *PAIRS[pair][number - 1],
        ]
        jobs.append(serve(folder, options, arguments, **variables))
    return jobs


def end(jobs: Sequence[Job]) -> None:
    """Interrupts all jobs at once, like Ctrl-C; kills a job that does not end in time."""
    for job in jobs:
        job.send_signal(signal.SIGINT)
    until = time.monotonic() + TO_END
    for job in jobs:
        try:
            job.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            job.kill()


def packed(folder: Path, target: Path, pair: str) -> str:
    """Packs the recordings of a pair into one file; returns a summary of its contents."""
    calls: dict[str, int] = {}
    with gzip.open(target / f"{pair}.jsonl.gz", "wt", compresslevel=9) as out:
        for recorded in sorted(folder.glob(f"{pair}-[12]-*.jsonl")):
            for line in recorded.read_text().splitlines():
                request = json.loads(line)
                request["instance"]["host"] = HOST
                out.write(json.dumps(request, separators=(",", ":")) + "\n")
                for report in request["reports"]:
                    calls[recorded.stem] = calls.get(recorded.stem, 0) + sum(
                        region["calls"]
                        for region in report.get("regions", [])
                        if region["name"] == "request"
                    )
    return f"{pair}: {(target / f'{pair}.jsonl.gz').stat().st_size} bytes, requests {calls}"


def main() -> None:
    """Warms the caches, runs all pairs at once until the time is up, and packs their recordings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--seconds",
        type=float,
        default=480.0,
        help="total seconds, excluding up to half a minute for the end",
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--backend",
        default="inductor",
        help="eager for a quick test of the script (with --pairs shapes)",
    )
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument(
        "--instances", type=int, default=2, help="instances per version (%(default)s)"
    )
    parser.add_argument(
        "--rate", type=float, default=60.0, help="requests per second and instance (%(default)s)"
    )
    parser.add_argument(
        "--interval", type=float, default=20.0, help="window length in seconds (%(default)s)"
    )
    parser.add_argument("--pairs", default=",".join(PAIRS))
    options = parser.parse_args()
    until, pairs = time.monotonic() + options.seconds, options.pairs.split(",")
    options.target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warm(folder, options, pairs)
        print(f"warm, {until - time.monotonic():.0f} s left", flush=True)
        jobs = [job for pair in pairs for job in version(folder, options, pair, 1)]
        time.sleep(BETWEEN)
        jobs += [job for pair in pairs for job in version(folder, options, pair, 2)]
        time.sleep(max(BETWEEN / 2, until - time.monotonic()))
        died = [job.args for job in jobs if job.poll() is not None]
        end(jobs)
        print(*(packed(folder, options.target, pair) for pair in pairs), sep="\n")
        if died:
            print((folder / "output").read_text()[-4000:])
            raise SystemExit(f"{len(died)} processes ended too early: {died}")


if __name__ == "__main__":
    main()
