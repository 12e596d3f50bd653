"""Errors and warnings of the agent. No error reaches the job."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


class AgentError(Exception):
    """Base class of the agent's own errors."""


class ConfigError(AgentError):
    """A setting is missing or wrong; the text is one sentence for the user."""


class ComparisonError(Exception):
    """A comparison is impossible; the text gives the reason and goes to the dashboard."""


def warn_user(sentence: str) -> None:
    """Prints one line on stderr; does nothing if there is no stderr."""
    with suppress(Exception):  # a closed stderr is the host's choice, and there is no other channel
        print(f"compilewatch: {sentence}", file=sys.stderr, flush=True)


def warn_user_nolock(sentence: str) -> None:
    """Prints one line from the agent's thread.

    Bypasses `sys.stderr`: a child forked at this moment would wait for its lock forever.
    """
    with suppress(Exception):
        os.write(2, f"compilewatch: {sentence}\n".encode("utf-8", "replace"))
