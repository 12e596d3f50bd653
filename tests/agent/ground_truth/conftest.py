"""Real torch of this process with the agent's sources, for what its own account of a compilation is
compared with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agent.sources.conftest import Seen, torch_unused


@pytest.fixture
def seen() -> Iterator[Seen]:
    with torch_unused():
        watcher = Seen()
        yield watcher
        watcher.uninstall()
