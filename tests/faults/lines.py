"""Dashboards shared between tests: starting one takes longer than most faults."""

from __future__ import annotations

import pytest

from tests.dashboard.alerts.slack_server import StandIn
from tests.faults.account import arrivals_note
from tests.faults.whole_line import WholeLine
from tests.flow.stack import host_port


class Lines:
    """One dashboard per database; after a failed test, the next test starts a new one."""

    def __init__(self, factory: pytest.TempPathFactory, hook: StandIn) -> None:
        self._factory, self.hook = factory, hook
        self._running: dict[str, WholeLine] = {}

    def of(self, database: str) -> WholeLine:
        """The dashboard on that database."""
        if database not in self._running:
            folder = self._factory.mktemp(database)
            line = self._running[database] = WholeLine(
                database=database, folder=folder, outbound=host_port(self.hook.url)
            )
            line.start(channel=self.hook.url)
            line.manage(
                "channel_add",
                "webhook",
                self.hook.url,
                "--project",
                "flow",
                "--name",
                "rounds",
                "--test",
            )
            arrivals_note(line)
        return self._running[database]

    def drop(self, database: str) -> None:
        """Ends the dashboard of a database."""
        self._running.pop(database).close()

    def close(self) -> None:
        """Ends all dashboards."""
        for database in list(self._running):
            self.drop(database)
