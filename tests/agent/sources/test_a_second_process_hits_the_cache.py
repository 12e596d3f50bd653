"""The answers of the caches: a miss in the first process, a hit with the time saved in the second,
a bypass if torch cannot cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from compilewatch.sources.inductor.cache_lookups import CacheCounters

PROGRAM = """
import json, torch
import torch._dynamo.utils
from dataclasses import asdict
from compilewatch.recording.recorder import Recorder
from compilewatch.sources import SOURCES, load
recorder = Recorder()
recorder.start()
print(load(SOURCES[0]).install(recorder)[0])
torch.compile(lambda x: x @ x)(torch.ones(4, 4))
print(json.dumps([asdict(compile) for compile in recorder.rotate(1, 0.0, 1.0).compiles]))
"""


def run(cache: Path) -> list[dict[str, Any]]:
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    answer, compiles = done.stdout.splitlines()
    assert answer == "yes"
    events: list[dict[str, Any]] = json.loads(compiles)
    return events


def test_the_first_process_misses_and_the_second_hits(tmp_path: Path) -> None:
    (cold,) = run(tmp_path)
    assert cold["cache"] == {"fx": "miss", "aot": "miss"}
    assert cold["saved"] is None
    (warm,) = run(tmp_path)
    assert warm["cache"] == {"fx": "hit", "aot": "hit"}
    assert warm["saved"] > 0
    assert "inductor" not in warm["seconds"]
    assert warm["seconds"]["cache_load"] > 0


def test_counters_from_before_the_installation_do_not_count() -> None:
    counters = {"inductor": Counter(fxgraph_cache_miss=7)}
    caches = CacheCounters(counters)
    assert caches.read_delta() == {}
    counters["inductor"]["fxgraph_cache_hit"] += 1
    assert caches.read_delta() == {"fx": "hit"}


def test_one_missed_part_makes_the_whole_a_miss() -> None:
    counters = {"inductor": Counter()}
    caches = CacheCounters(counters)
    counters["inductor"].update(fxgraph_cache_hit=3, fxgraph_cache_miss=1)
    assert caches.read_delta() == {"fx": "miss"}


def test_cleared_counters_count_from_zero_again() -> None:
    counters = {"aot_autograd": Counter(autograd_cache_hit=5, autograd_cache_miss=5)}
    caches = CacheCounters(counters)
    counters["aot_autograd"].clear()
    assert caches.read_delta() == {}
    counters["aot_autograd"].update(autograd_cache_bypass=1)
    assert caches.read_delta() == {"aot": "bypass"}
