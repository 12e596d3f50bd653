"""Keeps OpenTelemetry from seeing the agent's own requests, where the job has loaded it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_KEYS = ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY")
_PLAIN_KEY = "suppress_instrumentation"


@contextmanager
def suppressed() -> Iterator[None]:
    """What runs inside, on this thread, makes no spans."""
    context: Any = sys.modules.get("opentelemetry.context")
    token = _attach(context) if context is not None else None
    try:
        yield
    finally:
        if token is not None:
            context.detach(token)


def _attach(context: Any) -> Any:
    try:
        marked = context.set_value(_PLAIN_KEY, True)
        for name in _KEYS:
            if hasattr(context, name):
                marked = context.set_value(getattr(context, name), True, marked)
        return context.attach(marked)
    except Exception:  # noqa: BLE001 - another version of it, or half imported: the request goes out all the same
        return None
