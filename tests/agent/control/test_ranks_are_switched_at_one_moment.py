"""Two ranks that step together over gloo switch at the time that their command names, and keep
stepping."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compilewatch.wire.command import Command, command_sign

from tests.agent.programs import environment
from tests.agent.server import Dashboard

KEY = f"cw_cmd_8charsid_{'k' * 49}"
RANK = Path(__file__).parents[1] / "switched_rank.py"
APART = 2.0
"""Seconds: each agent checks once a second whether the time of the command has come, and reports
when it noticed."""


@pytest.fixture
def ranks(dashboard: Dashboard) -> Iterator[list[subprocess.Popen[str]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = environment(
        ENDPOINT=dashboard.endpoint, API_KEY="k", ALLOW_REMOTE="eager", COMMAND_KEY=KEY, SPOOL="off"
    )
    job = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "TORCHELASTIC_RUN_ID": "train-7",
    }
    begun = [
        subprocess.Popen(
            [sys.executable, str(RANK)],
            env={**settings, **job, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    yield begun
    for one in begun:
        one.kill()
        one.wait()


def applied(dashboard: Dashboard) -> dict[str, tuple[float, dict[str, Any]]]:
    """By instance: when the instance reported the command as applied."""
    found: dict[str, tuple[float, dict[str, Any]]] = {}
    for (instance, *_), report in dashboard.acked.items():
        for fact in report.get("facts", ()):
            if fact["kind"] == "command_receipt" and fact["data"]["state"] == "applied":
                found[instance] = fact["at"], fact["data"]
    return found


@pytest.mark.timeout(400)
def test_both_ranks_switch_together_and_keep_stepping(
    ranks: list[subprocess.Popen[str]], dashboard: Dashboard
) -> None:
    for one in ranks:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    dashboard.wait(lambda seen: len({request["instance"]["id"] for request in seen.requests}) == 2)
    assert {
        (request["instance"]["job"], request["instance"]["world_size"])
        for request in dashboard.requests
    } == {("train-7", 2)}
    moment = time.time() + 4.0
    order = Command(
        "a1.1", "8charsid", "eager", 1, "ranker", "1", "production", moment, moment + 60, share=1.0
    )
    dashboard.commands = [{"signed": base64.b64encode(command_sign(order, KEY)).decode()}]
    dashboard.wait(lambda seen: len(applied(seen)) == 2)
    (first, _), (second, _) = applied(dashboard).values()
    assert moment <= min(first, second) and abs(first - second) <= APART
    dashboard.wait(
        lambda seen: sum(region.eager_by.get("stance", 0) for region in seen.regions("score")) > 0
    )
    assert ranks[0].stdin is not None
    ranks[0].stdin.write("\n")
    ranks[0].stdin.flush()
    said = [json.loads(one.communicate(timeout=60)[0].splitlines()[-1]) for one in ranks]
    assert said[0] == said[1] and said[0]["wrong"] == 0 and said[0]["steps"] > 0
