"""Two real torch processes report to a running dashboard; the version without padding shows its
recompiles and its eager frame."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.flow.stack import REPOSITORY, Stack, wait_for

pytestmark = pytest.mark.timeout(400)


def serve(stack: Stack, version: str, fault: str) -> subprocess.Popen[bytes]:
    """The serving example with torch's own eager backend: Dynamo, guards and limits are real, and
    no C++ compiler is needed."""
    environment = {
        **stack.environment,
        "COMPILEWATCH_ENDPOINT": f"http://127.0.0.1:{stack.port}",
        "COMPILEWATCH_API_KEY": stack.key,
        "COMPILEWATCH_INTERVAL": "2",
    }
    arguments = [
        "--version",
        version,
        "--fault",
        fault,
        "--backend",
        "eager",
        "--seconds",
        "25",
        "--rate",
        "30",
    ]
    return subprocess.Popen(
        [sys.executable, "agents/examples/serve.py", *arguments], cwd=REPOSITORY, env=environment
    )


def test_two_versions_of_a_real_job_report(stack: Stack) -> None:
    jobs = [serve(stack, "1", "none"), serve(stack, "2", "shapes")]
    assert [job.wait(timeout=240) for job in jobs] == [0, 0]
    wait_for("everything is folded", stack.folded, seconds=60)

    calls = dict(
        stack.rows(
            "SELECT model_version.name, sum(calls) FROM version_hour JOIN series ON "
            "series.id = series_id"
            " JOIN model_version ON model_version.id = version_id WHERE region = 'request' "
            "GROUP BY 1"
        )
    )
    assert set(calls) == {"1", "2"}
    assert all(count > 100 for count in calls.values())
    eager = dict(
        stack.rows(
            "SELECT model_version.name, sum(eager_limit) FROM version_hour JOIN series ON "
            "series.id = series_id"
            " JOIN model_version ON model_version.id = version_id WHERE region = 'request' "
            "GROUP BY 1"
        )
    )
    assert eager["1"] == 0
    assert eager["2"] > 50
    reasons = stack.rows(
        "SELECT reason FROM compile_event JOIN model_version ON model_version.id = version_id"
        " WHERE kind = 'recompile' AND outcome = 'ok' AND model_version.name = '2'"
    )
    assert len(reasons) == 7
    assert all("size mismatch" in reason for (reason,) in reasons)
    assert stack.rows("SELECT min(total) FROM compile_event WHERE outcome = 'ok'")[0][0] > 0
    latched = stack.rows("SELECT text FROM finding WHERE kind = 'latched_eager'")
    assert len(latched) == 1
    assert "forward" in latched[0][0]
    waiting = stack.rows("SELECT ranges FROM ingest_sender")
    assert len(waiting) == 2
