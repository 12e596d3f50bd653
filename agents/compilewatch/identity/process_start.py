"""When this process began, as the kernel knows it: what ran before the agent did belongs to a cold start too."""

from __future__ import annotations

import os
import time
from pathlib import Path

_START_TICKS = 19
"""The place of the start in /proc/PID/stat, counted from behind the name, which may hold anything."""
OLDEST = 365 * 86400.0


def process_started() -> float:
    """Unix seconds, to a hundredth; the present moment where the kernel does not say or says what cannot be."""
    now = time.time()
    try:
        words = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        began = int(words[_START_TICKS]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - age if 0.0 <= age < OLDEST else now


def process_facts() -> tuple[str, int, str] | None:
    """Boot, pid and start of this process, which stay as they are while it runs where it began; None where the kernel does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return (
            boot,
            os.getpid(),
            Path("/proc/self/stat").read_text().rpartition(")")[2].split()[_START_TICKS],
        )
    except (OSError, ValueError, IndexError):
        return None
