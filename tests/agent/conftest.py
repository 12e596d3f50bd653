"""A dashboard on a socket, and the agent of this process, switched off again after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compilewatch import client
from compilewatch.recorder import RECORDER
from compilewatch.wire.report import Report

from tests.agent.server import Dashboard

KEY = "cw_ing_test"


@pytest.fixture
def dashboard() -> Iterator[Dashboard]:
    server = Dashboard()
    yield server
    server.stop()


@pytest.fixture
def start(dashboard: Dashboard) -> Iterator[Callable[..., None]]:
    """Starts the agent against the dashboard, with windows short enough for a test."""

    def begin(**settings: Any) -> None:
        chosen = {"model": "ranker", "version": "1", "endpoint": dashboard.endpoint, "api_key": KEY, "interval": 0.1, **settings}
        assert client.init(**chosen)

    yield begin
    client.shutdown()


@pytest.fixture
def window() -> Iterator[Callable[[], Report]]:
    """The recorder alone, without thread and sources; calling it closes the window."""
    RECORDER.start()
    yield lambda: RECORDER.close(1, 0.0, 1.0)
    RECORDER.stop()
