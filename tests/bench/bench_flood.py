"""Effect of a project that sends a hundred times the usual rate on another project: `python -m
tests.bench.bench_flood [--database sqlite]`.

Compares the p99 of the other project with and without the flood, alternately in one run, as
medians. The flood runs once without a rate limit and once with its own limit
(`reports_per_second`). The generators share the machine with the server."""

from __future__ import annotations

import argparse
import json
import re
import sys
from statistics import median
from typing import Any

from tests.bench.line import Line
from tests.bench.table import Row, show

TIMES, QUIET, QUIET_CONNECTIONS, FLOOD_CONNECTIONS = 100, 20, 4, 64
RATED = 2 * QUIET
"""Reports per second that the flooding project may send when it has a rate limit: twice the usual
rate."""


class Two:
    """A dashboard with two projects."""

    def __init__(self, database: str) -> None:
        self.line = Line(database)
        self.keys = {"quiet": self.line.key}
        for name in ("flood", "rated"):
            printed = self.line.manage("setup_project", "--name", name)
            self.keys[name] = re.search(r"cw_ing_\w+", printed)[0]  # type: ignore[index]
        self.line.manage("rate", "--project", "rated", "--set", f"reports_per_second={RATED}")
        self.line.serve("embedded" if database == "sqlite" else "granian")

    def quiet(self, seconds: float, flooding: str) -> dict[str, Any]:
        """Results of the quiet project, and of the flooding project if there is one."""
        flood = None
        if flooding:
            self.line.key = self.keys[flooding]
            flood = self.line.load_start(
                seconds=seconds + 2, connections=FLOOD_CONNECTIONS, rate=TIMES * QUIET
            )
        self.line.key = self.keys["quiet"]
        found = self.line.load(seconds=seconds, connections=QUIET_CONNECTIONS, rate=QUIET)
        found["flood"] = json.loads(flood.communicate()[0]) if flood else {}
        return found


def main() -> int:
    """Prints one line per round and the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", default="postgresql", choices=["postgresql", "sqlite"])
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    two = Two(options.database)
    found: dict[str, list[dict[str, Any]]] = {"": [], "flood": [], "rated": []}
    try:
        two.line.load(seconds=1, connections=QUIET_CONNECTIONS, rate=QUIET)
        for _ in range(options.rounds):
            for flooding, results in found.items():
                one = two.quiet(options.seconds, flooding)
                results.append(one)
                flood = one["flood"]
                flooded = (
                    f"; {flooding}: acknowledged {flood['rate']:.0f}/s, refused "
                    f"{flood['refused'] or 'none'}"
                    if flood
                    else ""
                )
                print(
                    f"quiet: acknowledged {one['acknowledged']}, refused "
                    f"{one['refused'] or 'none'}, p50 {one['p50']:.1f} ms,"
                    f" p99 {one['p99']:.1f} ms{flooded}",
                    flush=True,
                )
    finally:
        two.line.close()
    alone = median(one["p99"] for one in found[""])
    names = {
        "flood": f"p99 next to a flood x{TIMES}",
        "rated": f"p99 next to a rate-limited flood x{TIMES}",
    }
    goals = {"flood": None, "rated": 2.0}
    return show(
        Row(
            f"{options.database}: {name}",
            "ms",
            median(one["p99"] for one in found[flooding]),
            alone,
            "no flood",
            goal_ratio=goals[flooding],
        )
        for flooding, name in names.items()
    )


if __name__ == "__main__":
    sys.exit(main())
