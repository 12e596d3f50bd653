"""What can go wrong inside the agent; none of it ever reaches the job."""

from __future__ import annotations

import sys
from contextlib import suppress


class AgentError(Exception):
    """Anything the agent raises inside itself."""


class ConfigError(AgentError):
    """A setting is missing or wrong; the text is one sentence for a person."""


def say(sentence: str) -> None:
    """One line on stderr; where there is no stderr, nothing."""
    with suppress(Exception):  # a closed stderr is the host's choice, and there is no other place to say it
        print(f"compilewatch: {sentence}", file=sys.stderr, flush=True)
