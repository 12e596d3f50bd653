"""Three real processes as ranks of a job, one with a different graph for the same function: the
rank is named with its graph key."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dashboard.regressions.judge.rank_divergence import Rank, RankCompilation, find_divergences
from dashboard.regressions.judge.text.ranks import describe_divergence
from tests.agent.programs import run

JOB = """
import os, torch, compilewatch
compilewatch.init(model="m", interval=0.2, kind="training")

def step(x):
    return (x @ x).relu() if os.environ["RANK"] == "2" else (x @ x).sigmoid()

torch.compile(step)(torch.ones(8, 8))
"""


def compiled_by(
    program: Path, recording: Path, rank: int, monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    monkeypatch.setenv("RANK", str(rank))
    done = run(program, ENDPOINT=f"file:{recording}", SPOOL="off")
    assert done.returncode == 0, done.stderr
    requests = [json.loads(line) for line in recording.read_text().splitlines()]
    return [
        one
        for request in requests
        for report in request["reports"]
        for one in report.get("compiles", ())
    ]


@pytest.mark.needs("a C++ compiler")
@pytest.mark.timeout(170)
def test_the_rank_with_the_other_graph_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "WORLD_SIZE": "3",
        "LOCAL_RANK": "0",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "job.py").write_text(JOB)
    ranks, newest = [], datetime.now(UTC).timestamp()
    for number in range(3):
        told = compiled_by(tmp_path / "job.py", tmp_path / f"{number}.jsonl", number, monkeypatch)
        assert [(one["frame"], bool(one["key"])) for one in told] == [("step", True)], (
            os.getloadavg()
        )
        cache = told[0]["cache"]
        events = tuple(
            RankCompilation(
                newest,
                one["frame"],
                f"{one['file']}:{one['line']}",
                one["kind"],
                one["outcome"],
                one["key"],
                cache["aot"],
            )
            for one in told
        )
        ranks.append(Rank(number, newest + 60.0, events))
    found = [one for one in find_divergences(ranks) if one.kind == "graph"]
    assert [(one.ranks, one.certain) for one in found] == [((2,), True)]
    keys = [rank.compiled[0].key for rank in ranks]
    assert keys[0] == keys[1] != keys[2]
    assert (
        f"(`{keys[2][:9]}`) from the caches than the 2\u00a0others (`{keys[0][:9]}`)"
        in describe_divergence(found[0])
    )
