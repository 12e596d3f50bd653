"""JAX without torch, in real processes: its compilations, the answers of its persistent cache, and
the calls of compiled functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import sys
import compilewatch
assert "jax" not in sys.modules
compilewatch.init(model="ranker")
import jax
import jax.numpy as jnp
assert "torch" not in sys.modules

@jax.jit
def inner(x):
    return jnp.sin(x) * 2

watched = compilewatch.watch(inner)

@compilewatch.watch
@jax.jit
def step(x):
    return watched(x) + 1

@compilewatch.watch(items=lambda x: x.shape[0])
def waiting(x):
    return step(x).block_until_ready()

four, nine = jnp.ones(4), jnp.ones(9)
assert waiting(four).tolist() == step(four).tolist()
for _ in range(3):
    waiting(four)
watched(four)
compilewatch.ready()
step(nine)
jax.grad(lambda x: step(x).sum())(four)
step.lower(four).compile()(four)
print(jax.vmap(step)(jnp.ones((2, 4))).shape, step.__name__, [str(value) for value in step.eval_shape(four).shape])
"""

LISTENING = """
import jax, jax.monitoring, json
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.runtimes.jax import Jax
{change}
recorder = Recorder()
recorder.start()
source = Jax()
answers = [source.install(recorder), source.install(recorder)]
jax.jit(lambda x: x + 1)(1.0)
observed = len(recorder.rotate(1, 0.0, 1.0).compiles)
source.uninstall()
jax.jit(lambda x: x + 2)(1.0)
print(json.dumps([answers, observed, len(recorder.rotate(2, 1.0, 2.0).compiles), recorder.internal_error_count]))
"""


def python(program: str, **environment: str) -> str:
    full = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=full,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def recorded(folder: Path, name: str) -> dict[str, Any]:
    """Regions by name, the compilations of `step`, and the capability, of a process that uses the
    folder's cache."""
    path = folder / name
    python(
        PROGRAM,
        COMPILEWATCH_ENDPOINT=f"file:{path}",
        JAX_COMPILATION_CACHE_DIR=str(folder / "cache"),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
    )
    requests = [json.loads(line) for line in path.read_text().splitlines()]
    reports = [report for request in requests for report in request["reports"]]
    compiles = [
        one for report in reports for one in report.get("compiles", []) if one["frame"] == "step"
    ]
    return {
        "regions": [region for report in reports for region in report.get("regions", [])],
        "compiles": compiles,
        "capability": requests[-1]["instance"]["capabilities"]["jax"],
        "losses": reports[-1].get("losses"),
    }


def test_the_second_process_hits_the_cache_of_the_first(tmp_path: Path) -> None:
    cold, warm = recorded(tmp_path, "cold"), recorded(tmp_path, "warm")
    assert {one["cache"]["jax"] for one in cold["compiles"][:2]} == {"miss"}
    assert {one["cache"]["jax"] for one in warm["compiles"][:2]} == {"hit"}
    assert all(
        one["saved"] >= 0 and one["seconds"]["cache_load"] > 0 for one in warm["compiles"][:2]
    )
    assert all("saved" not in one for one in cold["compiles"][:2])
    first, again = cold["compiles"][:2]
    assert (first["kind"], again["kind"], first["backend"], first["outcome"]) == (
        "first",
        "recompile",
        "xla",
        "ok",
    )
    assert (
        first["file"] == "<string>"
        and first["seconds"]["trace"] > 0
        and first["seconds"]["xla"] > 0
    )
    assert (
        first["seconds"]["total"]
        <= sum(first["seconds"].values()) - first["seconds"]["total"] + 1e-5
    )
    assert not first.get("in_request") and again["in_request"]
    assert cold["capability"] == [
        "partly",
        "JAX reports neither the cause of a recompile nor the start of a compilation",
    ]
    assert cold["losses"] is None


def test_calls_are_counted_when_jax_computes_and_not_when_it_traces(tmp_path: Path) -> None:
    regions = recorded(tmp_path, "calls")["regions"]
    calls = {
        (region["name"], region.get("outermost", True), region.get("bucket")): region["calls"]
        for region in regions
    }
    assert calls == {
        ("waiting", True, "2^2"): 4,
        ("step", False, "2^2"): 4,
        ("step", True, "2^2"): 1,
        ("step", True, "2^3"): 1,
        ("inner", True, "2^2"): 1,
    }
    assert {region["name"]: region["runtime"] for region in regions} == {
        "waiting": "eager",
        "step": "jax",
        "inner": "jax",
    }
    assert next(region for region in regions if region["name"] == "waiting")["warmup"]["count"] == 1


def test_after_an_uninstall_jax_events_are_ignored(tmp_path: Path) -> None:
    answers, heard, after, errors = json.loads(python(LISTENING.format(change="")))
    assert answers[0] == answers[1] and answers[0][0] == "partly"
    assert (heard > 0, after, errors) == (True, 0, 0)


def test_a_jax_that_cannot_remove_a_listener_finds_it_silent() -> None:
    change = (
        "del jax.monitoring.unregister_event_duration_listener, "
        "jax.monitoring.unregister_event_listener"
    )
    _, heard, after, errors = json.loads(python(LISTENING.format(change=change)))
    assert (heard > 0, after, errors) == (True, 0, 0)


def test_a_jax_without_the_hooks_is_reported() -> None:
    change = "del jax.monitoring.register_event_duration_secs_listener"
    answers, heard, _, errors = json.loads(python(LISTENING.format(change=change)))
    assert answers[0] == [
        "no",
        "this JAX has no jax.monitoring.register_event_duration_secs_listener",
    ]
    assert (heard, errors) == (0, 0)
