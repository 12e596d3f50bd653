"""Cost that cache-key recording adds to a compilation: reading the parts of a key and the options,
compared with torch's own lookup."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo.utils
from compilewatch.identity.compile_config import Options, components
from compilewatch.sources.inductor.cache_key_parts import parts_of
from torch._inductor.utils import fresh_cache

ROUNDS = 30
GOAL_SHARE = 0.0005


def best(step: Callable[[], object]) -> float:
    """The shortest of several rounds, in milliseconds."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        step()
        rounds.append(time.perf_counter() - began)
    return min(rounds) * 1e3


def compiled() -> tuple[float, list[str]]:
    """Milliseconds of a compilation of forty layers that misses the cache, and the parts of its key
    that torch lists."""
    recorded: list[list[str]] = []
    theirs = torch._dynamo.utils.record_chromium_event_internal

    def record(event: dict[str, Any]) -> None:
        recorded.append((event.get("args") or {}).get("components") or [])
        theirs(event)

    torch._dynamo.utils.record_chromium_event_internal = record
    layers = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(40)])
    with fresh_cache():
        torch.compile(lambda x: x * 2)(torch.ones(4))
        began = time.perf_counter()
        torch.compile(layers)(torch.ones(4, 32))
        took = (time.perf_counter() - began) * 1e3
    torch._dynamo.utils.record_chromium_event_internal = theirs
    return took, max(recorded, key=len)


def main() -> int:
    """Prints the table; 1 if the goal is missed."""
    took, parts = compiled()
    options = Options()
    options.note()
    read, noted, listed = best(lambda: parts_of(parts)), best(options.note), best(components)
    print(f"{'compilation with a cache miss, ms':44} {took:9.1f}")
    print(f"{f'reading {len(parts)} parts of the cache key, ms':44} {read:9.3f}")
    print(f"{'reading the configured options, ms':44} {noted:9.3f}")
    print(
        f"{'share on the compiling thread':44} {(read + noted) / took:9.3%}  goal <= "
        f"{GOAL_SHARE:.2%}"
    )
    print(f"{'all components, on the agent thread, ms':44} {listed:9.3f}")
    return 0 if read + noted <= GOAL_SHARE * took else 1


if __name__ == "__main__":
    sys.exit(main())
