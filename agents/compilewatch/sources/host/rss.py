"""RSS: resident memory of this process and of the compile workers that torch started."""

from __future__ import annotations

import os
from pathlib import Path

MAX_CHILDREN = 256
_WORKER = b"_inductor/compile_worker"
_WORKER_MODULE = b"torch._inductor.compile_worker"


def rss_bytes(pid: int | str) -> int | None:
    """Resident bytes of a process; None if it has ended or is not readable."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def workers_rss_bytes() -> int | None:
    """Resident bytes of all compile workers below this process; None if children cannot be listed.

    Other children, such as data loader workers, are not included."""
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return None
    return sum(rss_bytes(pid) or 0 for pid in _descendants() if _is_worker(pid))


def _is_worker(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return _WORKER in command or _WORKER_MODULE in command


def _descendants() -> list[int]:
    """All descendants of this process: compile workers are children of a helper process."""
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting and len(found) < MAX_CHILDREN:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    except (OSError, ValueError):
        return children
    return children
