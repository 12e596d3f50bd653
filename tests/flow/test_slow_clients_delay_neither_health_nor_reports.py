"""While hundreds of clients send or read as slowly as possible, health checks and reports are
answered.

The goal is a second, and each run prints its duration. The bound leaves room for a busy machine;
without the deadlines, no response would arrive.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.flow.slow_clients import Reporter, shapes, slow_clients, worst
from tests.flow.stack import Stack

pytestmark = pytest.mark.timeout(600)
SECONDS = 6.0
"""Seconds of the attack in which responses are measured: shorter than every deadline, so all
clients are still connected."""

GOAL_SECONDS, BOUND_SECONDS = 1.0, 5.0
SHAPES = list(shapes(""))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Both server modes, regardless of the database under test."""
    running = Stack(
        database=request.param, folder=tmp_path_factory.mktemp("stack"), outbound="127.0.0.1:9"
    )
    try:
        running.start(channel="http://127.0.0.1:9/none")
        first = Reporter(running, instance=8_999_999)
        for _ in range(20):  # each process loads its code at the first request
            assert (running.status("/healthz"), running.status("/accounts/login/"), first()) == (
                200,
                200,
                200,
            )
        yield running
    except BaseException:
        print(running.logs())
        raise
    finally:
        running.close()


@pytest.mark.parametrize("shape", SHAPES)
def test_health_and_reports_are_answered(shape: str, stack: Stack) -> None:
    reporter = Reporter(stack, instance=9_000_000 + SHAPES.index(shape))
    assert reporter() == 200
    with slow_clients(stack.port, shapes(stack.key)[shape]):
        found = worst(stack, reporter, for_seconds=SECONDS)
    print(f"{stack.database}, {shape}: {found}, goal {GOAL_SECONDS} s")
    assert max(found.values()) < BOUND_SECONDS, found
