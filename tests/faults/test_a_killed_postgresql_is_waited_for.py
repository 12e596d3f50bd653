"""kill -9 of every process of PostgreSQL under load: 503 and never 500, no acknowledged report is
lost, and the dashboard recovers within seconds."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.faults.books import instances_check
from tests.faults.jobs import Jobs
from tests.faults.line import Holdings
from tests.faults.prober import Prober
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.faults.whole_line import WholeLine

pytestmark = pytest.mark.timeout(900)


def test_under_load(
    whole_line: WholeLine, seed: int, tmp_path: Path, add_result: AddResult
) -> None:
    chance, back, answers = random.Random(seed), [], []
    jobs = Jobs(tmp_path, f"http://127.0.0.1:{whole_line.port}", whole_line.key, f"killed-{seed}")
    assert whole_line.postgresql
    try:
        for _ in range(3):
            jobs.start("--impatient", "--seconds", "600")
        with Prober(whole_line, f"prober-{seed}") as prober:
            for _ in range(sized(2, 20)):
                prober.wait_for_ack()
                time.sleep(chance.uniform(0.0, 1.0))
                began = time.monotonic()
                whole_line.postgresql.kill()
                time.sleep(chance.uniform(0.5, 2.0))
                page = whole_line.status("/p/flow/")
                whole_line.postgresql.start()
                back.append(prober.wait_for_ack())
                answers += prober.since(began)
                assert page in (302, 503)  # the redirect to the sign-in page needs no query
    finally:
        jobs.end()
    assert all(answer.status == 200 or answer.busy for answer in answers), {
        answer.status for answer in answers
    }
    assert any(answer.busy for answer in answers)
    prober.check()
    if list(jobs.spools.rglob("*.spool")):
        jobs.sweep(f"http://127.0.0.1:{whole_line.port}")
    holdings = Holdings(whole_line)
    found = holdings.check(jobs.version, jobs.ours(), jobs.recorded())
    instances_check(whole_line, holdings, jobs.ours())
    assert found["lost that were on disk"] == 0
    add_result(
        "25",
        **found,
        kills=len(back),
        answers_503=sum(answer.busy for answer in answers),
        answers_500=0,
        longest_back_s=round(max(back), 2),
    )
