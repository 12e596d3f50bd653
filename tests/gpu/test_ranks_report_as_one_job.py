"""A DDP job over NCCL: one report stream per rank, with its rank and job; a rank with a cold cache
is visible."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from table import launched

from tests.agent.ground_truth.running import Recorded, read_recorded

RANKS = min(torch.cuda.device_count(), 4)
COLD = RANKS - 1

pytestmark = pytest.mark.ranks


def job(folder: Path, name: str) -> list[Recorded]:
    """The instances of one start of the job, by rank."""
    recording = folder / f"{name}.jsonl"
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS))
    launched(["ranks.py"], recording, launcher, RANK_CACHES=str(folder / "caches"))
    return read_recorded(recording)


def seconds(process: Recorded) -> float:
    return sum(
        one.seconds["total"]
        for report in process.reports
        for one in report.compiles
        if one.kind not in ("autotune", "cuda_graph")
    )


def test_a_rank_with_a_cold_cache_differs_from_the_warm_ranks(tmp_path: Path) -> None:
    job(tmp_path, "first")
    shutil.rmtree(tmp_path / "caches" / str(COLD))
    ranks = job(tmp_path, "second")
    identities = [one.identity for one in ranks]
    assert [(one.rank, one.local_rank, one.world_size) for one in identities] == [
        (rank, rank, RANKS) for rank in range(RANKS)
    ]
    assert (
        len({one.id for one in identities}) == RANKS and len({one.job for one in identities}) == 1
    )
    assert identities[0].job not in ("", "none") and {one.gpu for one in identities} == {
        torch.cuda.get_device_name(0)
    }
    answers = [
        {
            answer
            for report in one.reports
            for compile in report.compiles
            for answer in compile.cache.values()
        }
        for one in ranks
    ]
    print(
        "compile seconds by rank:",
        [round(seconds(one), 2) for one in ranks],
        "cache results:",
        answers,
    )
    assert "miss" in answers[COLD] and "hit" not in answers[COLD]
    assert all("miss" not in answer and "hit" in answer for answer in answers[:COLD])
    assert all(seconds(ranks[COLD]) > seconds(one) for one in ranks[:COLD])
    for process in ranks:
        assert (
            sum(
                region.calls
                for report in process.reports
                for region in report.regions
                if region.name == "step"
            )
            == 3
        )
        seqs = [report.seq for report in process.reports]
        assert seqs == sorted(seqs) and process.reports[-1].losses.internal_errors == 0
        assert any(fact.kind == "ready" for report in process.reports for fact in report.facts)
