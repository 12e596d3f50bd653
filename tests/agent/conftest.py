"""A dashboard on a socket, and the agent of this process, which is shut down after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compilewatch import agent
from compilewatch.recording.recorder import RECORDER
from compilewatch.reporter import Reporter
from compilewatch.wire.messages import Report

from tests.agent.server import Dashboard

KEY = "cw_ing_test"


@pytest.fixture(autouse=True)
def _a_cache_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that a killed process of one test left on disk would otherwise go to the next test with
    the same port."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def _settings_that_let_it_watch() -> None:
    """A test of wrong settings leaves the agent off for the rest of the process."""
    RECORDER.is_disabled = False


@pytest.fixture
def dashboard() -> Iterator[Dashboard]:
    server = Dashboard()
    yield server
    server.stop()


@pytest.fixture
def start(dashboard: Dashboard) -> Iterator[Callable[..., None]]:
    """Starts the agent against the dashboard, with windows short enough for a test."""

    def begin(**settings: Any) -> None:
        chosen = {
            "model": "ranker",
            "version": "1",
            "endpoint": dashboard.endpoint,
            "api_key": KEY,
            "interval": 0.1,
            **settings,
        }
        assert agent.init(**chosen)

    yield begin
    agent.shutdown()


@pytest.fixture
def window() -> Iterator[Callable[[], Report]]:
    """The recorder alone, without thread and sources; a call of the fixture closes the window."""
    RECORDER.is_disabled = False
    RECORDER.start()
    yield lambda: RECORDER.rotate(1, 0.0, 1.0)
    RECORDER.stop()


def the_instance() -> Reporter:
    """The running instance of this process."""
    worker = agent.AGENT.worker
    assert worker is not None
    worker.wait_until_loaded()
    assert worker.reporter is not None
    return worker.reporter
