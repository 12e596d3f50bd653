"""Goodput under triple load: `python -m tests.bench.bench_overload [--database sqlite]`.

Measures the maximum rate first, then offers three times this rate from many connections that pause
at most a fifth of a second after a refusal, then offers half of the maximum rate. Goal: at least
90% of the maximum rate while overloaded, and the original latency afterwards."""

from __future__ import annotations

import argparse
from typing import Any

from tests.bench.line import Line

GOAL = 0.9


def row(name: str, found: dict[str, Any], seconds: float) -> str:
    """One line of the table."""
    attempts = (found["acknowledged"] + sum(found["refused"].values()) + found["broken"]) / seconds
    return (
        f"{name:14} tried {attempts:5.0f}/s  acknowledged {found['rate']:5.0f}/s  p50 "
        f"{found['p50']:6.1f} ms  p99 {found['p99']:6.1f} ms"
        f"  refused {found['refused'] or 'none'}  broken {found['broken']}"
    )


def main() -> None:
    """Prints one line per phase, and the goodput."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", default="postgresql", choices=["postgresql", "sqlite"])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--times", type=float, default=3)
    parser.add_argument(
        "--connections", type=int, default=600, help="connections during the overload"
    )
    options = parser.parse_args()
    line, seconds = Line(options.database), options.seconds
    try:
        line.serve("embedded" if options.database == "sqlite" else "granian")
        line.load(seconds=2)
        usual = line.load(seconds=seconds)
        print(row("maximum rate", usual, seconds), flush=True)
        over = line.load(
            seconds=seconds, connections=options.connections, rate=options.times * usual["rate"]
        )
        print(row(f"{options.times:g} times maximum", over, seconds), flush=True)
        print(
            row("half of maximum", line.load(seconds=seconds, rate=usual["rate"] / 2), seconds),
            flush=True,
        )
        print(f"goodput while overloaded {over['rate'] / usual['rate']:.0%} (goal {GOAL:.0%})")
    finally:
        line.close()


if __name__ == "__main__":
    main()
