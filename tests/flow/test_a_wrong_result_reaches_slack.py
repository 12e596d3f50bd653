"""A real torch process whose compiler loses an addition compares a golden batch: the alert states
the error, its place and its size."""

from __future__ import annotations

import re
import socket
import subprocess
import sys

import pytest

from tests.flow.receiver import Receiver
from tests.flow.stack import REPOSITORY, Stack, wait_for

pytestmark = pytest.mark.timeout(400)


def serve(stack: Stack, version: str, fault: str) -> str:
    """Output of the job about its golden batch."""
    environment = {
        **stack.environment,
        "COMPILEWATCH_ENDPOINT": f"http://127.0.0.1:{stack.port}",
        "COMPILEWATCH_API_KEY": stack.key,
        "COMPILEWATCH_SPOOL": str(stack.folder / "spool"),
    }
    command = [sys.executable, "tests/flow/golden_job.py", version, fault, "3"]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    return done.stdout.strip()


def test_a_wrong_result_reaches_slack(stack: Stack, slack: Receiver) -> None:
    assert serve(stack, "1", "none") == "passed"
    wait_for(
        "the first version is folded",
        lambda: stack.rows("SELECT count(*) FROM parity_result")[0][0] == 1,
        seconds=120,
    )
    assert serve(stack, "2", "wrong") == "failed"
    wait_for("the message", lambda: slack.messages, seconds=240)

    text = str(slack.messages[0])
    assert "ROLL BACK" in text and "batch of 16" in text
    assert "differs from eager: output is off by" in text and "times the tolerance of" in text
    assert re.search(
        rf"on an instance \({re.escape(socket.gethostname())} / rank 0 / pid \d+\) of 2 since", text
    )
    assert "passed on 1 of 1" in text

    told = stack.rows(
        "SELECT model_version.name, state FROM parity_result JOIN instance ON instance.id "
        "= parity_result.instance_id"
        " JOIN model_version ON model_version.id = version_id"
    )
    assert dict(told) == {"1": "passed", "2": "failed"}
    model, version = stack.rows("SELECT model_id, id FROM model_version WHERE name = '2'")[0]
    page = stack.page(f"/p/flow/models/{model}/compiles/?version={version}")
    assert (
        "failed on 1" in page
        and "passed on 1" in page
        and "with the same weights and inputs" in page
    )
