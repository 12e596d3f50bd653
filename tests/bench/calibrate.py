"""Calibrates the judge on simulated fleets: false alarms first, then detection and its delay, and
peers on the same fleets.

`python -m tests.bench.calibrate [--deployments 600] [--hours 24] [--processes 4] [--prior learned]
[--groups worse,processes]`. Every fleet is simulated. The table lists the seeds; no constant was
chosen on them. Each finished deployment is stored. A restarted run continues with the missing
deployments of the same judge, hours and prior; a run with more deployments adds to the stored ones.
The work can be split over machines and time: `--shard 1/3` watches every third deployment,
`--seconds 500` starts no deployment after that time, `--into FILE` selects the file of results, and
`--combine FILE ...` prints the table of all deployments in these files with the `--prior`. `--rows
TEXT` watches only the rows whose name contains the text. Requires only numpy and scipy."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from hashlib import sha256
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

from dashboard.regressions.judge import PRODUCTION
from tests.bench.calibrate_table import format_name, table
from tests.bench.fleet_sim import Fleet
from tests.bench.judge_trials import Trial, trials, watch
from tests.dashboard.regressions.fleets import LEARNED

REPOSITORY = Path(__file__).resolve().parents[2]
PRIORS = {"production": PRODUCTION, "learned": LEARNED}


class Job(NamedTuple):
    """One deployment to watch. It does not start after `until`, in seconds of the monotonic clock
    that all processes share."""

    trial: Trial
    fleet: Fleet
    prior: str
    until: float
    judge: str


def judge_digest() -> str:
    """Digest of the judge and the fleets. Stored results of another judge are ignored."""
    folders = (REPOSITORY / "dashboard/regressions/judge", REPOSITORY / "tests/bench")
    names = ("fleet_*.py", "process_sim.py", "judge_*.py")
    files = [*folders[0].glob("*.py"), *(file for name in names for file in folders[1].glob(name))]
    return sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:12]


def watched(job: Job) -> dict[str, Any] | None:
    """One stored line; None if the time is up."""
    if time.monotonic() > job.until:
        return None
    began = time.process_time()
    found = asdict(watch((job.fleet, PRIORS[job.prior])))
    peers = found.pop("peers")
    return {
        "judge": job.judge,
        "prior": job.prior,
        "minutes": job.fleet.minutes,
        "group": job.trial.group,
        "name": job.trial.name,
        "seed": job.fleet.seed,
        **found,
        "peers": dict(zip(("pooled", "kayenta", "threshold"), peers, strict=True)),
        "took": round(time.process_time() - began, 2),
    }


def kept_lines(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Results of earlier runs, each deployment once. Lines cut off by a kill are skipped, and their
    deployments run again. Earlier files have a space before % in their names."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for file in files:
        for line in file.read_text().splitlines():
            try:
                kept = json.loads(line)
                kept["name"] = format_name(kept["name"])
                found[kept["judge"], kept["prior"], kept["minutes"], kept["seed"]] = kept
            except (ValueError, KeyError, TypeError):
                print(f"{file.name}: skipped a line that is not a deployment", file=sys.stderr)
    return list(found.values())


def jobs(chosen: argparse.Namespace, judge: str, done: set[int]) -> list[Job]:
    """The deployments that are still missing, in the order of the table."""
    until = time.monotonic() + chosen.seconds if chosen.seconds else float("inf")
    part, parts = (int(number) for number in chosen.shard.split("/"))
    found = []
    for trial in trials():
        if chosen.groups and not any(name in trial.group for name in chosen.groups.split(",")):
            continue
        if chosen.rows and chosen.rows not in trial.name:
            continue
        for fleet in trial.fleets(chosen.deployments, round(chosen.hours * 60)):
            if fleet.seed % parts == part - 1 and fleet.seed not in done:
                found.append(Job(trial, fleet, chosen.prior, until, judge))
    return found


def run(chosen: argparse.Namespace, file: Path) -> list[dict[str, Any]]:
    """Watches the missing deployments and returns all of them. Prints the number of deployments
    that did not start in time."""
    judge, minutes = judge_digest(), round(chosen.hours * 60)
    kept = kept_lines([file] if file.exists() else [])
    file.write_text("".join(json.dumps(line) + "\n" for line in kept))
    lines = [
        line
        for line in kept
        if (line["judge"], line["prior"], line["minutes"]) == (judge, chosen.prior, minutes)
    ]
    missing = jobs(chosen, judge, {line["seed"] for line in lines})
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


def main() -> None:
    """Runs the missing deployments, or reads the results of other runs, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deployments", type=int, default=600)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--prior", choices=PRIORS, default="production")
    parser.add_argument("--groups", help="only groups with one of these comma-separated texts")
    parser.add_argument("--rows", metavar="TEXT", help="only rows with this text")
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
        help="watch nothing; print the table of these results for the prior",
    )
    parser.add_argument("--again", action="store_true", help="delete the stored results first")
    chosen = parser.parse_args()
    if chosen.combine:
        lines = [line for line in kept_lines(chosen.combine) if line["prior"] == chosen.prior]
    else:
        chosen.into.parent.mkdir(parents=True, exist_ok=True)
        if chosen.again:
            chosen.into.unlink(missing_ok=True)
        lines = run(chosen, chosen.into)
    print(*table(lines, [(trial.group, trial.name) for trial in trials()]), sep="\n")


if __name__ == "__main__":
    main()
