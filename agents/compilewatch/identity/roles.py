"""What this process does in its job: from what is loaded, named and started, without an import."""

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
"""A parent is none: a trainer that starts the workers of a DataLoader is one until it compiles."""
_RAY_HELPERS = ("ray::ServeController", "ray::ProxyActor", "ray::HTTPProxy")


def role_of(serves: bool) -> str:
    """One of ROLES, or empty; `serves`: a watched call or a compilation was here."""
    for known in (_of_loader, _of_engine, _of_helper):
        with suppress(Exception):  # another release of a framework names its parts otherwise
            role = known()
            if role:
                return role
    if serves:
        return "worker"
    with suppress(Exception):
        return "parent" if LINEAGE.children_report() or LINEAGE.starts_processes() else ""
    return ""


def capabilities_of(
    role: str, serves: bool, answers: Mapping[str, tuple[str, str]]
) -> dict[str, tuple[str, str]]:
    """What the process can tell of what it does: a helper in which nothing compiles has nothing to tell, whatever its torch could."""
    if serves or role not in _HELPERS:
        return dict(answers)
    return {
        name: answer if name in _OF_ANY_PROCESS else ("no", HELPS_ALONE)
        for name, answer in answers.items()
    }


def _of_loader() -> str:
    """A worker of torch's DataLoader."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    process = sys.modules.get("multiprocessing.process")
    target = None if process is None else getattr(process.current_process(), "_target", None)
    loads = getattr(worker, "_worker_info", None) is not None or (
        target is not None and target is getattr(worker, "_worker_loop", None)
    )
    return "data worker" if loads else ""


def _of_engine() -> str:
    """vLLM's processes, by their names."""
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
    """A process that serves others of its job."""
    words = list(getattr(sys, "orig_argv", []))
    module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    if module in _AUXILIARY_MODULES or (
        not process_name() and any(word.startswith(_AUXILIARY_WORDS) for word in words)
    ):
        return "auxiliary"
    return "auxiliary" if "ray" in sys.modules and _title().startswith(_RAY_HELPERS) else ""


def process_name() -> str:
    """The name of a child of `multiprocessing`; empty in others."""
    process: Any = sys.modules.get("multiprocessing.process")
    current = None if process is None else process.current_process()
    return "" if current is None or current._parent_pid is None else str(current.name)


def _title() -> str:
    """What the process writes over its command line."""
    with suppress(OSError):
        return (
            Path(f"/proc/{os.getpid()}/cmdline")
            .read_bytes()
            .split(b"\0")[0]
            .decode("utf-8", "replace")
        )
    return ""
