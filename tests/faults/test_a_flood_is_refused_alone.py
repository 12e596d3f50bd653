"""One project sends a hundred times the load of another, and more than its rate limit: it receives
429, and the other project is not affected.

`tests/bench/bench_flood.py` measures the latency of the other project."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.prober import Prober
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.flow.stack import REPOSITORY, Stack, wait_for

pytestmark = pytest.mark.timeout(600)
QUIET, TIMES = 20, 100
"""Reports per second of the quiet project, and the factor that the flooding project tries to send;
its rate limit is twice the first value."""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """A web process on PostgreSQL, and a worker."""
    running = Stack(database="postgresql", folder=tmp_path, outbound="127.0.0.1:9")
    try:
        running.manage("migrate", "--verbosity=0")
        running.key = key_of(running, "Quiet")
        yield running
    except BaseException:
        print(running.logs())
        raise
    finally:
        running.close()


def key_of(stack: Stack, name: str) -> str:
    """The key of a new project."""
    return str(re.search(r"cw_ing_\w+", stack.manage("setup_project", "--name", name))[0])  # type: ignore[index]


def flood(stack: Stack, key: str, seconds: float) -> dict[str, Any]:
    """The results of a flood."""
    words = [
        sys.executable,
        "-m",
        "tests.bench.load_reports",
        f"http://127.0.0.1:{stack.port}/api/v1/reports",
        "--key",
        key,
        "--json",
    ]
    words += ["--seconds", str(seconds), "--connections", "32", "--rate", str(QUIET * TIMES)]
    environment = stack.environment | {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'agents'}"}
    found: dict[str, Any] = json.loads(
        subprocess.check_output(words, cwd=REPOSITORY, env=environment, timeout=seconds + 300)
    )
    return found


def test_the_other_project_is_not_affected(stack: Stack, add_result: AddResult) -> None:
    key = key_of(stack, "Flood")
    stack.manage("rate", "--project", "flood", "--set", f"reports_per_second={2 * QUIET}")
    for role in ("web", "worker"):
        stack.start_role(role)
    wait_for("the web process responds", lambda: stack.status("/healthz") == 200, seconds=300)
    with Prober(stack, "quiet", pause=1 / QUIET) as prober:
        prober.wait_for_ack()
        acked_before = prober.acked
        found = flood(stack, key, sized(3, 60))
        prober.wait_for_ack()
    assert set(found["refused"]) == {"429"} and found["broken"] == 0
    assert found["acknowledged"] > 0
    assert {answer.status for answer in prober.answers} == {200} and prober.acked > acked_before
    refused = stack.rows(
        "SELECT project.slug, code, sum(count) FROM ingest_refusal JOIN project ON "
        "project.id = project_id GROUP BY 1, 2"
    )
    assert {(slug, code) for slug, code, _ in refused} <= {("flood", "too_many")}
    prober.check()
    add_result(
        "33",
        quiet_acknowledged=prober.acked,
        flood_acknowledged=found["acknowledged"],
        flood_refused=found["refused"]["429"],
    )
