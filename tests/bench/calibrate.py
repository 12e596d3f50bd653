"""Calibrates the judge on simulated fleets: false verdicts first, then detection and its delay, and
peers on the same fleets.

`python -m tests.bench.calibrate [--deployments 4] [--hours 12] [--processes 4] [--prior learned]
[--seeds test]`. Every fleet is simulated. `--deployments` is the number per scenario and layout.
Constants and rules of the judge are chosen on `--seeds tuning` only. Each finished deployment is
stored. A restarted run continues with the missing deployments of the same judge, hours and prior; a
run with more deployments adds to the stored ones. The work can be split over machines and time:
`--shard 1/3` watches every third deployment, `--seconds 500` starts no deployment after that time,
`--into FILE` selects the file of results, and `--combine FILE ...` prints the tables of all
deployments in these files with the `--prior` and `--seeds`. `--groups`, `--layouts` and `--rows`
select scenarios, `--each` prints a row per scenario and layout, `--wrong` lists the wrong verdicts
with their seeds and sentences. Requires only numpy, scipy and this repository."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from hashlib import sha256
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

from dashboard.regressions.judge import PRODUCTION
from tests.bench.calibrate_table import list_wrong, tables
from tests.bench.fleet_model import Fleet
from tests.bench.fleet_scenarios import FIRST_SEEDS, GROUPS, Scenario, scenarios
from tests.bench.judge_trials import watch
from tests.dashboard.regressions.fleets import LEARNED

REPOSITORY = Path(__file__).resolve().parents[2]
PRIORS = {"production": PRODUCTION, "learned": LEARNED}
RUN = ("judge", "prior", "minutes", "seeds")
"""The fields that are equal in all deployments of a table."""
Line = dict[str, Any]


class Job(NamedTuple):
    """One deployment to watch, with the fields of its line that are known before. It does not start
    after `until`, in seconds of the monotonic clock that all processes share."""

    known: Line
    fleet: Fleet
    until: float


def judge_digest() -> str:
    """Digest of the judge and the fleets. Stored results of another judge are ignored."""
    judge, bench = REPOSITORY / "dashboard/regressions/judge", REPOSITORY / "tests/bench"
    names = ("fleet_*.py", "process_sim.py", "judge_*.py")
    files = [*judge.rglob("*.py"), *(file for name in names for file in bench.glob(name))]
    return sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:12]


def watched(job: Job) -> Line | None:
    """One stored line; None if the time is up."""
    if time.monotonic() > job.until:
        return None
    began = time.process_time()
    found = watch(job.fleet, PRIORS[job.known["prior"]])
    return {**job.known, **found, "took": round(time.process_time() - began, 2)}


def kept_lines(files: Iterable[Path]) -> list[Line]:
    """Results of earlier runs, each deployment once. Lines cut off by a kill are skipped, and their
    deployments run again."""
    found: dict[tuple[Any, ...], Line] = {}
    for file in files:
        for text in file.read_text().splitlines():
            try:
                line = json.loads(text)
                found[tuple(line[name] for name in (*RUN, "seed"))] = line
            except (ValueError, KeyError, TypeError):
                print(f"{file.name}: skipped a line that is not a deployment", file=sys.stderr)
    return list(found.values())


def is_chosen(scenario: Scenario, chosen: argparse.Namespace) -> bool:
    """True if the options select the scenario."""
    return (
        (not chosen.groups or scenario.group in chosen.groups.split(","))
        and (not chosen.layouts or scenario.layout in chosen.layouts.split(","))
        and (not chosen.rows or chosen.rows in scenario.name)
    )


def jobs(chosen: argparse.Namespace, run: Line, done: set[int]) -> list[Job]:
    """The deployments that are still missing: the first one of each scenario, then the second ones,
    so that a run that ends early has all scenarios."""
    until = time.monotonic() + chosen.seconds if chosen.seconds else float("inf")
    part, parts = (int(number) for number in chosen.shard.split("/"))
    found = []
    for scenario in scenarios():
        if not is_chosen(scenario, chosen):
            continue
        known = {
            **run,
            "group": scenario.group,
            "name": scenario.name,
            "layout": scenario.layout,
            "faster": scenario.fleet.fault == "slow" and scenario.fleet.size < 0,
            "part": scenario.fleet.fault_bucket
            or scenario.fleet.fault_mode
            or scenario.fleet.fault_gpu,
        }
        fleets = scenario.fleets(chosen.deployments, run["minutes"], chosen.seeds)
        for number, fleet in enumerate(fleets):
            mine = (scenario.number + number) % parts == part - 1
            if mine and fleet.seed not in done:
                found.append((number, Job({**known, "seed": fleet.seed}, fleet, until)))
    return [job for _, job in sorted(found, key=lambda item: item[0])]


def run_missing(chosen: argparse.Namespace, file: Path) -> list[Line]:
    """Watches the missing deployments and returns all of them. Prints the number of deployments
    that did not start in time."""
    run = {
        "judge": judge_digest(),
        "prior": chosen.prior,
        "minutes": round(chosen.hours * 60),
        "seeds": chosen.seeds,
    }
    kept = kept_lines([file] if file.exists() else [])
    whole = file.with_suffix(".whole")
    whole.write_text("".join(json.dumps(line) + "\n" for line in kept))
    whole.replace(file)
    lines = [line for line in kept if all(line[name] == run[name] for name in RUN)]
    missing = jobs(chosen, run, {line["seed"] for line in lines})
    print(
        f"{len(lines)} deployments are stored, {len(missing)} remain for "
        f"{chosen.processes} processes",
        file=sys.stderr,
        flush=True,
    )
    late = 0
    with Pool(chosen.processes) as pool, file.open("a") as out:
        for line in pool.imap_unordered(watched, missing, chunksize=1):
            if line is None:
                late += 1
                continue
            lines.append(line)
            out.write(json.dumps(line) + "\n")
            out.flush()
    if late:
        print(f"{late} deployments did not start within {chosen.seconds:g} s", file=sys.stderr)
    return lines


def in_order(lines: Iterable[Line]) -> list[Line]:
    """The lines by group and seed, which is the order of the scenarios."""
    return sorted(lines, key=lambda line: (GROUPS.index(line["group"]), line["seed"]))


def options() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deployments", type=int, default=4, help="per scenario and layout")
    parser.add_argument("--hours", type=float, default=12.0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--prior", choices=PRIORS, default="production")
    parser.add_argument("--seeds", choices=FIRST_SEEDS, default="tuning")
    parser.add_argument("--groups", help="comma-separated: " + ", ".join(GROUPS))
    parser.add_argument("--layouts", help='comma-separated, as in "1 v 1,2 v 3+3"')
    parser.add_argument("--rows", metavar="TEXT", help="only scenarios with this text")
    parser.add_argument("--each", action="store_true", help="a row per scenario and layout")
    parser.add_argument(
        "--wrong", action="store_true", help="list each false verdict and each fault not found"
    )
    parser.add_argument("--shard", default="1/1", metavar="PART/PARTS")
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.0,
        help="start no deployment after this time; 0 means no limit",
    )
    parser.add_argument(
        "--into",
        type=Path,
        default=REPOSITORY / ".var/calibration/deployments.jsonl",
        metavar="FILE",
    )
    parser.add_argument(
        "--combine",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="watch nothing; print the tables of these results",
    )
    parser.add_argument("--again", action="store_true", help="delete the stored results first")
    return parser


def main() -> None:
    """Runs the missing deployments, or reads the results of other runs, and prints the tables."""
    chosen = options().parse_args()
    if chosen.combine:
        lines = [
            line
            for line in kept_lines(chosen.combine)
            if (line["prior"], line["seeds"]) == (chosen.prior, chosen.seeds)
        ]
    else:
        chosen.into.parent.mkdir(parents=True, exist_ok=True)
        if chosen.again:
            chosen.into.unlink(missing_ok=True)
        lines = run_missing(chosen, chosen.into)
    print(*tables(in_order(lines), each=chosen.each), sep="\n")
    if chosen.wrong:
        print("", *list_wrong(in_order(lines)), sep="\n")


if __name__ == "__main__":
    main()
