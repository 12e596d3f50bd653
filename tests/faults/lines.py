"""Dashboards that go on from test to test: starting one takes longer than most faults."""

from __future__ import annotations

import pytest

from tests.dashboard.alerts.slack_stand_in import StandIn
from tests.faults.account import arrivals_note
from tests.faults.whole_line import WholeLine
from tests.flow.stack import host_port


class Lines:
    """One for each database; after a test that failed the next one starts with a new one."""

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
        """Ends it."""
        self._running.pop(database).close()

    def close(self) -> None:
        """Ends all."""
        for database in list(self._running):
            self.drop(database)
