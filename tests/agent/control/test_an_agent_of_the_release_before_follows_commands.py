"""An agent of the previous release, which verifies commands by their MAC alone, accepts an answer
with both signatures and executes the command."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.programs import environment
from tests.agent.server import Dashboard
from tests.agent.signed import SYMMETRIC, both, command
from tests.architecture.tree import REPOSITORY

JOB = """
import sys, time
import compilewatch
try:
    from compilewatch.switch import routed_function
    routed_function(len)
except ImportError:
    pass
assert compilewatch.init(model="ranker", version="1", interval=0.1)
print(compilewatch.__file__, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def job(
    dashboard: Dashboard, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[subprocess.Popen[str]]:
    with tarfile.open(
        REPOSITORY / f"tests/data/releases/{getattr(request, 'param', 'symmetric-agent')}.tar.xz"
    ) as archive:
        archive.extractall(
            tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {})
        )
    settings = environment(
        ENDPOINT=dashboard.endpoint,
        API_KEY="k",
        ALLOW_REMOTE="eager",
        COMMAND_KEY=SYMMETRIC,
        SPOOL="off",
    )
    path = {"PYTHONPATH": str(tmp_path / "agents")}
    process = subprocess.Popen(
        [sys.executable, "-c", JOB],
        env=settings | path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline().startswith(str(tmp_path)), (
        "the earlier agent is the one that runs"
    )
    yield process
    process.kill()
    process.wait()


def receipts(dashboard: Dashboard) -> list[dict[str, Any]]:
    facts = [fact for report in dashboard.acked.values() for fact in report.get("facts", ())]
    return [fact["data"] for fact in facts if fact["kind"] == "command_receipt"]


def test_it_executes_a_command_with_both_signatures(
    job: subprocess.Popen[str], dashboard: Dashboard
) -> None:
    dashboard.commands = [both(command())]
    dashboard.wait(lambda seen: any(one["state"] == "applied" for one in receipts(seen)))
    assert {one["state"] for one in receipts(dashboard)} == {
        "accepted",
        "applied",
    } and job.poll() is None


@pytest.mark.parametrize("job", ["first-code"], indirect=True)
def test_the_first_release_ignores_commands_and_keeps_reporting(
    job: subprocess.Popen[str], dashboard: Dashboard
) -> None:
    dashboard.commands = [both(command())]
    before = len(dashboard.acked)
    dashboard.wait(lambda seen: len(seen.acked) >= before + 5)
    assert job.poll() is None and len({seq for _, seq, _ in dashboard.acked}) == len(
        dashboard.acked
    ), "no window comes twice"
