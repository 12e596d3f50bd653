"""After a shutdown, and after twenty internal faults, the agent has restored all functions of
torch; the guide lists the remaining parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agent.programs import run

GUIDE = (Path(__file__).resolve().parents[3] / "agents/docs/design/host-process.md").read_text()
PROGRAM = """
import functools, json, logging, sys, threading
from types import BuiltinFunctionType, FunctionType
CALLED = (FunctionType, BuiltinFunctionType, type(functools.lru_cache(len)))
import torch, torch._dynamo, torch._inductor.codecache, torch._inductor.cudagraph_utils, torch.jit
from torch._C._dynamo.eval_frame import set_guard_complete_hook

def functions():
    # Each function in a module of torch or in a class of such a module, by its place, and whether the function is ours.
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("torch", "logging", "gc"):
            owners = [(name, module)] + [(f"{name}.{key}", value) for key, value in list(vars(module).items()) if isinstance(value, type)]
            for path, owner in owners:
                for key, value in list(vars(owner).items()):
                    value = value.__func__ if type(value) in (classmethod, staticmethod) else value
                    if type(value) in CALLED:
                        file = value.__code__.co_filename if type(value) is FunctionType else ""
                        found[f"{path}.{key}"] = (id(value), value, "/agents/compilewatch/" in file)
    return found

def logs():
    known = [logging.getLogger(), *(one for one in list(logging.Logger.manager.loggerDict.values()) if isinstance(one, logging.Logger))]
    return {one.name: (one.level, len(one.handlers), len(one.filters)) for one in known}

def hook():
    present = set_guard_complete_hook(None)
    set_guard_complete_hook(present)
    return present

@torch.compile(backend="eager", dynamic=False)
def f(x):
    return x * 2
f(torch.ones(2))
before, logs_before, path, hook_before = functions(), logs(), list(sys.meta_path), hook()
import compilewatch
from compilewatch.recording.recorder import RECORDER
found = {}
for end in ("shutdown", "twenty faults"):
    assert compilewatch.init(model="m", interval=300)
    call = compilewatch.watch(f, name="f")
    call(torch.ones(3))
    RECORDER.count_lookups(True)
    worker = compilewatch.agent.AGENT.worker
    worker._prepared.wait(300)
    during = sorted(place for place, (_, _, ours) in functions().items() if ours)
    if end == "shutdown":
        compilewatch.shutdown()
    else:
        for number in range(20):
            RECORDER.record_internal_error(ValueError(number))
    worker.thread.join(300)
    after = functions()
    found[end] = {
        "during": during,
        "ours": sorted(place for place, (_, _, ours) in after.items() if ours),
        "other": sorted(place for place in before if place in after and before[place][0] != after[place][0]),
        "logs": {name: state for name, state in logs().items() if state != logs_before.get(name, state)},
        "path": [type(one).__module__ for one in sys.meta_path if one not in path],
        "hook": hook() is hook_before,
        "threads": [one.name for one in threading.enumerate()],
        "answer": call(torch.ones(4)).tolist(),
        "recording": RECORDER.buffers is not None,
    }
print(json.dumps(found))
"""
PATIENCE = 1200.0
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """The state of a process after each of the two ends."""
    folder = tmp_path_factory.mktemp("switched_off")
    done = run(PROGRAM, limit=PATIENCE, ENDPOINT=f"file:{folder / 'reports.jsonl'}")
    assert done.returncode == 0, done.stderr
    ends: dict[str, dict[str, object]] = json.loads(done.stdout.splitlines()[-1])
    return ends


@pytest.mark.parametrize("end", ["shutdown", "twenty faults"])
def test_every_function_of_torch_is_restored(end: str, found: dict[str, dict[str, object]]) -> None:
    after = found[end]
    during = after.pop("during")
    assert isinstance(during, list) and len(during) > 5, (
        "nothing was bound, so the test is meaningless"
    )
    assert after == {
        "ours": [],
        "other": [],
        "logs": {},
        "path": [],
        "hook": True,
        "threads": ["MainThread"],
        "answer": [2.0] * 4,
        "recording": False,
    }


def test_the_guide_lists_the_remaining_parts() -> None:
    [stays] = [line for line in GUIDE.split("\n\n") if line.startswith("After a switch-off")]
    for word in ("shutdown()", "20 faults", "wrappers", "skip", "at exit", "at a fork"):
        assert word in " ".join(stays.split())
