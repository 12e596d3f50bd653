"""A running dashboard for each test of the whole line, on the database under test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environment import DATABASE
from tests.flow.receiver import Receiver
from tests.flow.stack import Stack, host_port


@pytest.fixture
def slack() -> Iterator[Receiver]:
    """The receiver in place of Slack."""
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def stack(tmp_path: Path, slack: Receiver) -> Iterator[Stack]:
    """A dashboard with a project, a key and one Slack channel."""
    running = Stack(database=DATABASE, folder=tmp_path, outbound=host_port(slack.url))
    try:
        running.start(channel=slack.url)
        yield running
    except BaseException:
        print(running.logs())
        raise
    finally:
        running.close()
