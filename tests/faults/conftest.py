"""A dashboard in its own processes, the proxy between the dashboard and the agents, and the jobs of
a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import dashboard
from tests.dashboard.alerts.slack_server import stand_in
from tests.faults.jobs import Jobs
from tests.faults.line import Line
from tests.faults.lines import Lines
from tests.faults.proxy import FaultProxy
from tests.faults.whole_line import WholeLine

__all__ = ["dashboard"]


@pytest.fixture(scope="package")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """A dashboard for all fault tests of this process."""
    running = Line(tmp_path_factory.mktemp("line"))
    yield running
    running.close()


@pytest.fixture(scope="package")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lines]:
    """Dashboards whose processes may die, for all fault tests of this process."""
    with stand_in() as hook:
        running = Lines(tmp_path_factory, hook)
        yield running
        running.close()


@pytest.fixture
def whole_line(lines: Lines) -> WholeLine:
    """The running full stack."""
    line = lines.of("postgresql")
    line.settle()
    return line


@pytest.fixture
def proxy(line: Line, seed: int) -> Iterator[FaultProxy]:
    """The proxy between the agents and the dashboard."""
    between = FaultProxy(line.stack.port, seed)
    yield between
    between.close()


@pytest.fixture
def jobs(line: Line, proxy: FaultProxy, seed: int, tmp_path: Path) -> Iterator[Jobs]:
    """The jobs of the test, under their own version."""
    running = Jobs(tmp_path, proxy.endpoint, line.stack.key, f"case-{seed}")
    yield running
    running.end()
