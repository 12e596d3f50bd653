"""Workers that a DataLoader forks or spawns are separate instances, and only if they make watched
calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.programs import run
from tests.agent.server import Dashboard

JOB = """
import os, sys
import compilewatch, torch
from torch.utils.data import DataLoader, Dataset

augment = compilewatch.watch(lambda x: x + 1, name="augment")
step = compilewatch.watch(lambda x: x.sum(), name="step")

class Numbers(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, i):
        return augment(torch.tensor([i])) if sys.argv[2] == "watched" else torch.tensor([i])

def begin(worker):
    if sys.argv[1] == "spawn":
        compilewatch.init(model="m", interval=200)

if __name__ == "__main__":
    compilewatch.init(model="m", interval=200)
    how = sys.argv[1]
    for batch in DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context=how, worker_init_fn=begin):
        step(batch)
"""


@pytest.mark.parametrize(
    ("how", "what"), [("fork", "watched"), ("fork", "plain"), ("spawn", "watched")]
)
def test_workers_count_their_own_calls(
    tmp_path: Path, dashboard: Dashboard, how: str, what: str
) -> None:
    program = tmp_path / "job.py"
    program.write_text(JOB)
    done = run(program, how, what, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stderr) == (0, "")
    assert dashboard.calls("step") == 6
    assert dashboard.calls("augment") == (24 if what == "watched" else 0)
    assert len({request["instance"]["id"] for request in dashboard.requests}) == (
        3 if what == "watched" else 1
    )
    found = {request["instance"]["pid"]: request["instance"] for request in dashboard.requests}
    assert sorted(one["role"] for one in found.values()) == ["data worker"] * (len(found) - 1) + [
        "worker"
    ]
    assert len({one["job"] for one in found.values()}) == 1
