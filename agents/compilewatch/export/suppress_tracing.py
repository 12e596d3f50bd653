"""Instrumentation suppression: hides the agent's own requests from OpenTelemetry, if the job has
loaded it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_KEYS = ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY")
_PLAIN_KEY = "suppress_instrumentation"


@contextmanager
def suppress_spans() -> Iterator[None]:
    """Suppresses spans on this thread inside the block."""
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
    except Exception:  # noqa: BLE001 - an unknown or half-imported version
        return None
