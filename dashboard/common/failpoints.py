"""Named places at which a test kills this process; nothing outside tests defines the setting that
says when."""

import os
import signal

from django.conf import settings


def crash_point(name: str) -> None:
    """Dies here as kill -9 would, if CRASH, a function that a test's settings define, says that it
    is time."""
    due = getattr(settings, "CRASH", None)
    if due is not None and due(name):
        os.kill(os.getpid(), signal.SIGKILL)
