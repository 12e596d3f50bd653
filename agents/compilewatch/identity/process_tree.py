"""Process lineage: the processes that one root forked or started through `multiprocessing`."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

_SPAWNED = ("--multiprocessing-fork", "--billiard-fork")
_FORKSERVER = "from multiprocessing.forkserver import main"
_RENAMED = (("gunicorn: worker", "gunicorn: master"), ("VLLM::", ""))
"""Prefixes of command lines of a child and its parent, for frameworks that overwrite them."""
_FIRST = "count(1)"
_PARENT, _START = 1, 19
"""Indexes in /proc/PID/stat after the process name, which may contain spaces."""


class Lineage:
    """The oldest relative of this process, and whether its own children report."""

    def __init__(self) -> None:
        self._root = ""
        self._root_found_by = 0
        self._has_children = False
        self._child_reports: Any = None

    def before_fork(self) -> None:
        """Prepares the lineage for a forked child.

        The child needs its root while the parent still runs, and a shared byte that marks
        the child as reporting.
        """
        self._root_find()
        self._has_children = True
        if self._child_reports is None:
            self._child_reports = importlib.import_module("mmap").mmap(-1, 1)

    def after_fork(self) -> None:
        """Resets the state in the child, which has no children yet."""
        self._has_children = False

    def on_child_start(self) -> None:
        """Marks in a forked child that the child is about to report."""
        if self._child_reports is not None and not self._has_children:
            self._child_reports[0] = 1
            self._child_reports = None

    def has_reporting_children(self) -> bool:
        """Returns whether a forked child has reported."""
        return (
            self._has_children and self._child_reports is not None and self._child_reports[0] == 1
        )

    def has_started_processes(self) -> bool:
        """Returns whether `multiprocessing` has started a child."""
        module = sys.modules.get("multiprocessing.process")
        return repr(getattr(module, "_process_counter", _FIRST)) != _FIRST

    def job(self, host: str) -> str:
        """Returns the job name that this process and its relatives share; empty if it has no
        relatives.
        """
        self._root_find()
        own = self._root_found_by == os.getpid() and self._root.startswith(f"{os.getpid()}:")
        return (
            f"{host}:{self._root}"
            if self._root and (self._has_children or self.has_started_processes() or not own)
            else ""
        )

    def _root_find(self) -> None:
        if not self._root_found_by:
            self._root_found_by, self._root = os.getpid(), _root_of(os.getpid())


def _root_of(pid: int) -> str:
    """Returns pid and start time of the oldest relative; empty if they are unknown."""
    try:
        words = list(getattr(sys, "orig_argv", [])) if pid == os.getpid() else []
        words = words if _is_spawned(words) else _words(pid)
        while True:
            parent = int(_stat(pid)[_PARENT])
            parent_words = _words(parent) if parent > 0 else []
            if not parent_words or not _are_related(words, parent_words):
                return f"{pid}:{_stat(pid)[_START]}"
            pid, words = parent, parent_words
    except (OSError, ValueError, IndexError):
        return ""


def _are_related(child: list[str], parent: list[str]) -> bool:
    """Returns whether one process started the other; a fork keeps the command line."""
    if child == parent or _is_spawned(child):
        return True
    return any(
        child[0].startswith(child_prefix) and parent[0].startswith(parent_prefix)
        for child_prefix, parent_prefix in _RENAMED
    )


def _is_spawned(words: list[str]) -> bool:
    return any(word in _SPAWNED or word.startswith(_FORKSERVER) for word in words)


def _words(pid: int) -> list[str]:
    return (
        Path(f"/proc/{pid}/cmdline")
        .read_bytes()
        .decode("utf-8", "replace")
        .rstrip("\0")
        .split("\0")
    )


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


LINEAGE = Lineage()
