"""Real torch in this process with the agent's sources, compared with torch's own account of a
compilation."""

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
