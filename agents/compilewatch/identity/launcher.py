"""Where a process stands in its job, as its launcher says by environment variables: the job's name, rank, local rank, world size."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

# Each launcher's variables: job, rank, local rank, world size.
_LAUNCHERS = (
    ("TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("SLURM_JOB_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
    ("RAY_JOB_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("JOB_NAME", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
)
_UNNAMED = "none"
"""What torchrun calls every job that was given no name."""


def placement_of(environ: Mapping[str, str]) -> tuple[str, int, int, int]:
    """Job (empty if none is known), rank, local rank, world size."""
    for job, rank, local_rank, world_size in _LAUNCHERS:
        if environ.get(job):
            name = environ[job] if environ[job] != _UNNAMED else _unnamed_job(environ)
            return (
                name,
                _whole(environ, rank, 0),
                _whole(environ, local_rank, 0),
                _whole(environ, world_size, 1),
            )
    return (
        "",
        _whole(environ, "RANK", 0),
        _whole(environ, "LOCAL_RANK", 0),
        _whole(environ, "WORLD_SIZE", 1),
    )


def _unnamed_job(environ: Mapping[str, str]) -> str:
    """What the ranks of one launch share and another launch has not: where they meet, and on a single host the launcher itself."""
    if environ.get("LOCAL_WORLD_SIZE") == environ.get("WORLD_SIZE"):
        return f"{socket.gethostname()}:{os.getppid()}"
    master = environ.get("MASTER_ADDR", "")
    return f"{master}:{environ.get('MASTER_PORT', '')}" if master else ""


def _whole(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
