"""Reports acknowledged per second, compared with the smallest possible server: `python -m
tests.bench.bench_ingest [--database sqlite]`.

All methods are measured alternately in one run, with medians over several rounds, because other
work may load the machine. The processor time of each part shows which part limits the rate."""

from __future__ import annotations

import argparse
from statistics import median
from typing import Any

from tests.bench.line import OURS, Line

GOALS = {"postgresql": 2500, "sqlite": 600}
APPLICATIONS = {
    "parse": "tests.bench.smallest_server:application",
    "minimal": "tests.bench.smallest_server:application",
    "wsgi": "dashboard.wsgi:application",
    "ours": OURS,
}


def measure(line: Line, server: str, way: str, seconds: float, connections: int) -> dict[str, Any]:
    """One round of one method."""
    line.environment["BENCH_PEER"] = way
    line.serve(server, APPLICATIONS[way])
    try:
        line.load(seconds=1.5, connections=connections)
        before = line.processor("web"), line.processor("database")
        found = line.load(seconds=seconds, connections=connections)
        count = max(1, found["acknowledged"])
        found["web"] = (line.processor("web") - before[0]) / count * 1e6
        found["database"] = (line.processor("database") - before[1]) / count * 1e6
        found["generator"] = found["processor"] / count * 1e6
    finally:
        line.stop("web")
        if line.database == "postgresql":
            line.rows("TRUNCATE ingest_inbox, bench_inbox")
    return found


def row(server: str, way: str, rounds: list[dict[str, Any]]) -> str:
    """The medians of all rounds of one method."""
    middle = {
        name: median(each[name] for each in rounds)
        for name in ("rate", "p50", "p99", "web", "database", "generator")
    }
    return (
        f"{server:9} {way:8} {middle['rate']:6.0f}/s  p50 {middle['p50']:5.1f} ms  p99 "
        f"{middle['p99']:5.1f} ms   processor us per report:"
        f" web {middle['web']:4.0f}, database {middle['database']:4.0f}, generator "
        f"{middle['generator']:4.0f}"
    )


def main() -> None:
    """Prints one line per method and server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", default="postgresql", choices=sorted(GOALS))
    parser.add_argument("--servers", nargs="+", default=["granian", "gunicorn"])
    parser.add_argument("--ways", nargs="+", default=list(APPLICATIONS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    line = Line(options.database)
    try:
        if options.database == "sqlite":
            options.servers, options.ways = ["embedded"], ["ours"]
        else:
            line.rows(
                "CREATE TABLE bench_inbox (id bigserial primary key, instance text, first "
                "bigint, last bigint, report bytea)"
            )
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for _ in range(options.rounds):
            for server in options.servers:
                for way in options.ways:
                    found.setdefault((server, way), []).append(
                        measure(line, server, way, options.seconds, options.connections)
                    )
        for (server, way), rounds in found.items():
            print(
                row(server, way, rounds)
                + (f"   goal {GOALS[options.database]}/s" if way == "ours" else "")
            )
    finally:
        line.close()


if __name__ == "__main__":
    main()
