"""Process role: derived from loaded modules, process names and the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from compilewatch.identity.process_tree import LINEAGE
from compilewatch.wire.messages import HELPS_ALONE

_AUXILIARY_MODULES = (
    "torch._inductor.compile_worker",
    "vllm.model_executor.models.registry",
    "torch.distributed.run",
)
_AUXILIARY_WORDS = (
    "from multiprocessing.resource_tracker import main",
    "from multiprocessing.forkserver import main",
)
ENGINE, ENGINE_WORKER, ENGINE_SERVER = (
    ("EngineCore", "VLLM::EngineCore"),
    ("VllmWorker", "VLLM::Worker"),
    ("ApiServer", "APIServer"),
)
_HELPERS, _OF_ANY_PROCESS = ("auxiliary", "data worker"), ("memory",)
"""Not for parents: a trainer that starts DataLoader workers counts as a parent until it compiles.
"""
_RAY_HELPERS = ("ray::ServeController", "ray::ProxyActor", "ray::HTTPProxy")


def role_of(serves: bool) -> str:
    """Returns one of ROLES, or empty.

    `serves`: this process had a watched call or a compilation.
    """
    for detect in (_of_loader, _of_engine, _of_helper):
        with suppress(Exception):  # another release of a framework names its parts differently
            role = detect()
            if role:
                return role
    if serves:
        return "worker"
    with suppress(Exception):
        return (
            "parent" if LINEAGE.has_reporting_children() or LINEAGE.has_started_processes() else ""
        )
    return ""


def capabilities_of(
    role: str, serves: bool, answers: Mapping[str, tuple[str, str]]
) -> dict[str, tuple[str, str]]:
    """Returns the capabilities to report.

    A helper process in which nothing compiles reports none, regardless of its torch.
    """
    if serves or role not in _HELPERS:
        return dict(answers)
    return {
        name: answer if name in _OF_ANY_PROCESS else ("no", HELPS_ALONE)
        for name, answer in answers.items()
    }


def _of_loader() -> str:
    """Detects a worker of torch's DataLoader."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    process = sys.modules.get("multiprocessing.process")
    target = None if process is None else getattr(process.current_process(), "_target", None)
    loads = getattr(worker, "_worker_info", None) is not None or (
        target is not None and target is getattr(worker, "_worker_loop", None)
    )
    return "data worker" if loads else ""


def _of_engine() -> str:
    """Detects vLLM's processes by their names."""
    if "vllm" not in sys.modules:
        return ""
    names = (process_name(), _title())
    if any(name.startswith(ENGINE_WORKER) for name in names):
        return "worker"
    if any(name.startswith(ENGINE) for name in names):
        return "engine"
    command = Path(sys.argv[0]).parts if sys.argv else ()
    serves = "vllm" in command[-1:] or ("vllm" in command and "entrypoints" in command)
    return "auxiliary" if serves or any(name.startswith(ENGINE_SERVER) for name in names) else ""


def _of_helper() -> str:
    """Detects a process that serves other processes of its job."""
    words = list(getattr(sys, "orig_argv", []))
    module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    if module in _AUXILIARY_MODULES or (
        not process_name() and any(word.startswith(_AUXILIARY_WORDS) for word in words)
    ):
        return "auxiliary"
    return "auxiliary" if "ray" in sys.modules and _title().startswith(_RAY_HELPERS) else ""


def process_name() -> str:
    """Returns the name of a child of `multiprocessing`; empty in other processes."""
    process: Any = sys.modules.get("multiprocessing.process")
    current = None if process is None else process.current_process()
    return "" if current is None or current._parent_pid is None else str(current.name)


def _title() -> str:
    """Returns the title that the process wrote over its command line."""
    with suppress(OSError):
        return (
            Path(f"/proc/{os.getpid()}/cmdline")
            .read_bytes()
            .split(b"\0")[0]
            .decode("utf-8", "replace")
        )
    return ""
