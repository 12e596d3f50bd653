"""Cost of a sketch: adding values in bulk and merging many small sketches. Prints the best of
several rounds."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable

from compilewatch.wire.sketch import Sketch

ROUNDS, VALUES, SKETCHES = 9, 10_000, 10_000
GOAL_ADD, GOAL_MERGE = 270, 40


def best(step: Callable[[], object]) -> float:
    """The shortest of several rounds, in seconds."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        step()
        rounds.append(time.perf_counter() - began)
    return min(rounds)


def main() -> int:
    """Prints the table; 1 if a goal is missed."""
    chance = random.Random(1)
    values = [chance.lognormvariate(-5, 0.5) for _ in range(VALUES)]
    small = [Sketch.of(chance.lognormvariate(-5, 0.5) for _ in range(10)) for _ in range(SKETCHES)]

    def merge() -> None:
        whole = Sketch()
        for sketch in small:
            whole.merge(sketch)

    add_ns = best(lambda: Sketch.of(values)) / VALUES * 1e9
    merge_ms = best(merge) * 1e3
    print(f"{'add in bulk, ns per value':36} {add_ns:8.1f}  goal <= {GOAL_ADD}")
    print(f"{'merge 10,000 sketches of ten, ms':36} {merge_ms:8.1f}  goal <= {GOAL_MERGE}")
    return 0 if add_ns <= GOAL_ADD and merge_ms <= GOAL_MERGE else 1


if __name__ == "__main__":
    sys.exit(main())
