"""`make bench`: runs every benchmark, each in its own process and next to its peer, and prints one
table of all results.

`python -m tests.bench start share` runs only these two; `--list` prints the names."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.table import COLLECT, collected, lines

NAMES = [
    file.stem.removeprefix("bench_") for file in sorted(Path(__file__).parent.glob("bench_*.py"))
]


def main() -> int:
    """Runs the benchmarks; 1 if one ended with an error or missed a goal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="*", default=[], help="benchmarks to run (default: all)")
    parser.add_argument("--list", action="store_true", help="print the names of the benchmarks")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.name if name not in NAMES]
    if unknown or chosen.list:
        print(
            f"there is no benchmark {', '.join(unknown)}; there are:" if unknown else "benchmarks:",
            " ".join(NAMES),
        )
        return 2 if unknown else 0
    failed, took = [], {}
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows"
        for name in chosen.name or NAMES:
            print(f"\n== {name}", flush=True)
            began = time.monotonic()
            if subprocess.run(
                [sys.executable, "-m", f"tests.bench.bench_{name}"],
                env={**os.environ, COLLECT: str(rows)},
            ).returncode:
                failed.append(name)
            took[name] = time.monotonic() - began
        print("\n" + "\n".join(lines(collected(rows))))
    print(
        "\n"
        + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items())
        + f"; total {sum(took.values()) / 60:.0f} min"
    )
    if failed:
        print(f"error or missed goal: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
