"""What one project that sends a hundred times as much does to another: `python -m
tests.bench.bench_flood [--database sqlite]`.

The other project's p99 with the flood beside it, and without, in turn in one run, medians; the
flood once as it comes, and once with a rate of its own (`reports_per_second`). The generators take
their part of the same machine."""

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
"""Reports a second that the flooding project may send where it has a rate: twice what is usual."""


class Two:
    """A dashboard with two projects."""

    def __init__(self, database: str) -> None:
        self.line = Line(database)
        self.keys = {"quiet": self.line.key}
        for name in ("flood", "rated"):
            said = self.line.manage("setup_project", "--name", name)
            self.keys[name] = re.search(r"cw_ing_\w+", said)[0]  # type: ignore[index]
        self.line.manage("rate", "--project", "rated", "--set", f"reports_per_second={RATED}")
        self.line.serve("embedded" if database == "sqlite" else "granian")

    def quiet(self, seconds: float, beside: str) -> dict[str, Any]:
        """The figures of the quiet project, and those of the other one if it floods."""
        flood = None
        if beside:
            self.line.key = self.keys[beside]
            flood = self.line.load_start(
                seconds=seconds + 2, connections=FLOOD_CONNECTIONS, rate=TIMES * QUIET
            )
        self.line.key = self.keys["quiet"]
        found = self.line.load(seconds=seconds, connections=QUIET_CONNECTIONS, rate=QUIET)
        found["flood"] = json.loads(flood.communicate()[0]) if flood else {}
        return found


def main() -> int:
    """Prints a line a round and the table."""
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
            for beside, figures in found.items():
                one = two.quiet(options.seconds, beside)
                figures.append(one)
                flood = one["flood"]
                said = (
                    f"; {beside}: acknowledged {flood['rate']:.0f}/s, refused "
                    f"{flood['refused'] or 'none'}"
                    if flood
                    else ""
                )
                print(
                    f"quiet: acknowledged {one['acknowledged']}, refused "
                    f"{one['refused'] or 'none'}, p50 {one['p50']:.1f} ms,"
                    f" p99 {one['p99']:.1f} ms{said}",
                    flush=True,
                )
    finally:
        two.line.close()
    alone = median(one["p99"] for one in found[""])
    names = {
        "flood": f"p99 beside a flood x{TIMES}",
        "rated": f"p99 beside a flood x{TIMES} that has a rate",
    }
    goals = {"flood": None, "rated": 2.0}
    return show(
        Row(
            f"{options.database}: {name}",
            "ms",
            median(one["p99"] for one in found[beside]),
            alone,
            "no flood",
            goal_ratio=goals[beside],
        )
        for beside, name in names.items()
    )


if __name__ == "__main__":
    sys.exit(main())
