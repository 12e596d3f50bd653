"""Instance label: the configured name, else the pod and the framework's name for this process.

Nothing is imported to find it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType

from compilewatch.identity.roles import ENGINE, ENGINE_SERVER, ENGINE_WORKER, process_name

MAX_STACK_SCANS = 10


class Label:
    """The label of this process.

    A name found once is kept, because the framework's state is gone at the end of the process. A
    forked child starts without it.
    """

    def __init__(self) -> None:
        self._part, self._pid = "", 0

    def refresh(self) -> None:
        """Asks the framework that runs the process."""
        if self._pid != os.getpid():
            self._part, self._pid = "", os.getpid()
        self._part = self._part or _find_part()

    def text(self, given: str, environ: Mapping[str, str]) -> str:
        """Returns the label as known now; `given` is the configured name."""
        self.refresh()
        if given:
            return given
        pod = environ.get("POD_NAME") or (
            environ.get("HOSTNAME", "") if environ.get("KUBERNETES_SERVICE_HOST") else ""
        )
        return f"{pod} {self._part}".strip()


LABEL = Label()


def _find_part() -> str:
    for find_part in (
        _of_replica,
        _of_gunicorn,
        _of_pool,
        _of_litserve,
        _of_uvicorn,
        _of_engine_part,
    ):
        with suppress(Exception):  # another release of a framework stores its name elsewhere
            part = find_part()
            if part:
                return part
    return ""


def _of_replica() -> str:
    """Returns Ray Serve's replica id."""
    context = sys.modules.get("ray.serve.context")
    replica = getattr(context, "_INTERNAL_REPLICA_CONTEXT", None)
    return "" if replica is None else str(replica.replica_id.to_full_id_str())


def _of_gunicorn() -> str:
    if "gunicorn.arbiter" not in sys.modules:
        return ""
    frame = _main_frame("gunicorn/arbiter.py", "spawn_worker")
    return "" if frame is None else f"gunicorn worker {int(frame.f_locals['worker'].age)}"


def _of_pool() -> str:
    """Returns Celery's names of the worker and of the process in its pool."""
    prefork, process = (
        sys.modules.get("celery.concurrency.prefork"),
        sys.modules.get("billiard.process"),
    )
    if prefork is None or process is None or process.current_process()._parent_pid is None:
        return ""
    worker = getattr(prefork, "_process_hostname", None) or "celery"
    return f"{worker} {process.current_process().name}"


def _of_litserve() -> str:
    if "litserve" not in sys.modules or process_name() != "inference-worker":
        return ""
    frame = _main_frame("litserve/loops/loops.py", "inference_worker")
    return "" if frame is None else f"LitServe worker {int(frame.f_locals['worker_id'])}"


def _of_uvicorn() -> str:
    """Returns the number of a worker that uvicorn started."""
    name, number = process_name(), process_name().rpartition("-")[2]
    command = Path(sys.argv[0]).parts if sys.argv else ()
    is_worker = (
        "uvicorn.supervisors" in sys.modules
        and ("uvicorn" in command[-2:])
        and name.startswith("SpawnProcess-")
    )
    return f"uvicorn worker {number}" if is_worker and number.isdigit() else ""


def _of_engine_part() -> str:
    """Returns vLLM's name for this process."""
    name = process_name()
    return (
        name
        if "vllm" in sys.modules and name.startswith((*ENGINE, *ENGINE_WORKER, *ENGINE_SERVER))
        else ""
    )


def _main_frame(file: str, function: str) -> FrameType | None:
    """Finds the frame of a function on the main thread's stack.

    The search repeats, because a frame that returns during the search ends the chain.
    """
    for _ in range(MAX_STACK_SCANS):
        frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
        while frame is not None:
            if frame.f_code.co_name == function and frame.f_code.co_filename.replace(
                "\\", "/"
            ).endswith(file):
                return frame
            frame = frame.f_back
    return None
