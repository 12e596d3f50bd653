"""Calibrates the judge on simulated fleets: false alarms first, then what it finds and when, and peers on the same fleets.

`python -m tests.bench.calibrate [--deployments 600] [--hours 24] [--processes 4] [--prior learned] [--groups worse,processes]`. Every
fleet is simulated; the seeds are in the table, and they are none that a constant was chosen on. Each row is kept when it is done:
started again with the same numbers, it goes on after the last one; `--again` begins anew."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from multiprocessing import Pool
from pathlib import Path
from statistics import median
from typing import Any

from dashboard.regressions.judge import PRODUCTION
from tests.bench.judge_trials import Trial, Watched, trials, watch
from tests.bench.line import REPOSITORY
from tests.dashboard.regressions.fleets import LEARNED

PRIORS = {"production": PRODUCTION, "learned": LEARNED}
PEERS = ("pooled", "kayenta", "threshold")
HEAD = (
    "| | deployments | ROLL BACK, median | WATCH | HEALTHY after 1, 6, 24 h | pooled test | Kayenta-style | threshold | seeds | took |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def summed(trial: Trial, seeds: Sequence[int], found: Sequence[Watched], took: float) -> dict[str, Any]:
    """One row as it is kept."""
    minutes = [each.roll_back for each in found if each.roll_back is not None]
    return {
        "group": trial.group,
        "name": trial.name,
        "deployments": len(found),
        "roll_back": len(minutes),
        "median": median(minutes) if minutes else None,
        "watch": sum(each.watch is not None and each.roll_back is None for each in found),
        "healthy": [sum(said) for said in zip(*(each.healthy for each in found), strict=True)],
        "peers": {name: sum(getattr(each.peers, name) is not None for each in found) for name in PEERS},
        "seeds": [min(seeds), max(seeds)],
        "took": took,
    }


def said(row: dict[str, Any]) -> str:
    """One row as it is printed."""
    count = row["deployments"]
    when = f", {row['median']:.0f} min" if row["median"] is not None else ""
    healthy = " · ".join(percent(number, count) for number in row["healthy"]) or "–"
    peers = " | ".join(percent(row["peers"][name], count) for name in PEERS)
    seeds = f"{row['seeds'][0]}–{row['seeds'][1]}"
    verdicts = f"{row['roll_back']} of {count}{when} | {row['watch']} | {healthy}"
    return f"| {row['name']} | {count} | {verdicts} | {peers} | {seeds} | {row['took']:.0f} s |"


def percent(part: int, whole: int) -> str:
    """A share without digits that mean nothing."""
    return f"{100 * part / whole:.0f} %"


def totals(rows: Iterable[dict[str, Any]]) -> list[str]:
    """What the goals are about: false alarms over all healthy and confounded deployments."""
    lines = []
    kept = list(rows)
    for title, groups in (
        ("side by side, healthy and confounded", ("healthy", "confounded")),
        ("one after the other, healthy", ("sequential, healthy",)),
        ("a worse world, healthy", ("worse world, healthy", "worse world still, healthy")),
    ):
        of = [row for row in kept if row["group"] in groups]
        count = sum(row["deployments"] for row in of)
        if count:
            false, watch_only = (sum(row[key] for row in of) for key in ("roll_back", "watch"))
            peers = ", ".join(f"{name} {percent(sum(row['peers'][name] for row in of), count)}" for name in PEERS)
            lines.append(
                f"{title}: {false} of {count} falsely ROLL BACK ({100 * false / count:.2f} %), {watch_only} WATCH "
                f"({100 * watch_only / count:.1f} %); peers' alarms: {peers}"
            )
    return lines


def kept_rows(file: Path) -> dict[str, dict[str, Any]]:
    """Rows of an earlier run with the same numbers; a line cut off by a kill is done again."""
    rows = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows[f"{row['group']}/{row['name']}"] = row
    return rows


def main() -> None:
    """Runs the rows that are missing and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", type=int, default=600)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--prior", choices=PRIORS, default="production")
    parser.add_argument("--groups", help="parts of the names of groups, with commas: only these")
    parser.add_argument("--again", action="store_true")
    chosen = parser.parse_args()
    folder = REPOSITORY / ".var" / "calibration"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{chosen.deployments}-{chosen.hours:g}-{chosen.prior}.jsonl"
    if chosen.again:
        file.unlink(missing_ok=True)
    rows = kept_rows(file)
    print(f"Simulated. {chosen.deployments} deployments, {chosen.hours:g} h each, prior of {chosen.prior}, {chosen.processes} processes.")
    group = ""
    with Pool(chosen.processes) as pool, file.open("a") as out:
        for trial in trials():
            if chosen.groups and not any(part in trial.group for part in chosen.groups.split(",")):
                continue
            if trial.group != group:
                group = trial.group
                print(f"\n**{group}**\n", *HEAD, sep="\n")
            key = f"{trial.group}/{trial.name}"
            if key not in rows:
                started = time.perf_counter()
                fleets = trial.fleets(chosen.deployments, round(chosen.hours * 60))
                found = pool.map(watch, [(fleet, PRIORS[chosen.prior]) for fleet in fleets], chunksize=1)
                rows[key] = summed(trial, [fleet.seed for fleet in fleets], found, time.perf_counter() - started)
                out.write(json.dumps(rows[key]) + "\n")
                out.flush()
            print(said(rows[key]))
            sys.stdout.flush()
    print("", *totals(rows.values()), f"took {sum(row['took'] for row in rows.values()) / 60:.1f} min in all", sep="\n\n")


if __name__ == "__main__":
    main()
