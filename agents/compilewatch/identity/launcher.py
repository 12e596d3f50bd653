"""Launcher variables: job name, rank, local rank and world size from the environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

# Variables of each launcher: job, rank, local rank, world size.
_LAUNCHERS = (
    ("TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("SLURM_JOB_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
    ("RAY_JOB_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("JOB_NAME", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
)
_UNNAMED = "none"
"""torchrun's run id for a job without a name."""


def placement_of(environ: Mapping[str, str]) -> tuple[str, int, int, int]:
    """Returns job (empty if unknown), rank, local rank, world size."""
    for job, rank, local_rank, world_size in _LAUNCHERS:
        if environ.get(job):
            name = environ[job] if environ[job] != _UNNAMED else _unnamed_job(environ)
            return (
                name,
                _int_variable(environ, rank, 0),
                _int_variable(environ, local_rank, 0),
                _int_variable(environ, world_size, 1),
            )
    return (
        "",
        _int_variable(environ, "RANK", 0),
        _int_variable(environ, "LOCAL_RANK", 0),
        _int_variable(environ, "WORLD_SIZE", 1),
    )


def _unnamed_job(environ: Mapping[str, str]) -> str:
    """Builds a job name that all ranks of one launch share: the rendezvous address, or on a single
    host the launcher's process id.
    """
    if environ.get("LOCAL_WORLD_SIZE") == environ.get("WORLD_SIZE"):
        return f"{socket.gethostname()}:{os.getppid()}"
    master = environ.get("MASTER_ADDR", "")
    return f"{master}:{environ.get('MASTER_PORT', '')}" if master else ""


def _int_variable(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
