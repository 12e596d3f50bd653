"""What can go wrong inside the agent; none of it ever reaches the job."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


class AgentError(Exception):
    """Anything the agent raises inside itself."""


class ConfigError(AgentError):
    """A setting is missing or wrong; the text is one sentence for a person."""


class NotCompared(Exception):
    """There is nothing to compare, or no way to; the text says why and goes to the dashboard."""


def say(sentence: str) -> None:
    """One line on stderr; where there is no stderr, nothing."""
    with suppress(
        Exception
    ):  # a closed stderr is the host's choice, and there is no other place to say it
        print(f"compilewatch: {sentence}", file=sys.stderr, flush=True)


def say_aside(sentence: str) -> None:
    """The same from the agent's thread: past `sys.stderr`, whose lock a child that is forked at this moment would wait for."""
    with suppress(Exception):
        os.write(2, f"compilewatch: {sentence}\n".encode("utf-8", "replace"))
