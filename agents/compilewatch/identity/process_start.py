"""Process start time from the kernel: a cold start includes the time before the agent starts."""

from __future__ import annotations

import os
import time
from pathlib import Path

_START_TICKS = 19
"""Index of the start time in /proc/PID/stat after the process name, which may contain spaces."""
MAX_AGE_SECONDS = 365 * 86400.0


def process_start_time() -> float:
    """Returns the start in Unix seconds, to 0.01 s; the current time if the kernel gives no
    plausible value.
    """
    now = time.time()
    try:
        words = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start = int(words[_START_TICKS]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - start
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - age if 0.0 <= age < MAX_AGE_SECONDS else now


def process_key() -> tuple[str, int, str] | None:
    """Returns boot id, pid and start time, which change if the process is restored or copied; None
    if the kernel does not provide them.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return (
            boot,
            os.getpid(),
            Path("/proc/self/stat").read_text().rpartition(")")[2].split()[_START_TICKS],
        )
    except (OSError, ValueError, IndexError):
        return None
