"""Memory: what torch's allocator holds on each GPU, and what this process and its children hold on the host."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from compilewatch.recorder import Recorder
from compilewatch.sources import Answer, Source
from compilewatch.wire.report import Device

CHILDREN_EVERY = 5
MAX_CHILDREN = 256


class Memory(Source):
    """Reads once a second on the agent's thread; never starts CUDA, never resets a peak that belongs to the job."""

    name = "memory"
    module = ""

    def __init__(self) -> None:
        self._polls = 0
        self._answer: Answer = ("no", "")
        self._utilisation = Utilisation()

    def install(self, recorder: Recorder) -> Answer:
        self._answer = ("partly", "the host only: the job has not started CUDA") if _rss("self") is not None else ("no", "no /proc here")
        return self._answer

    def poll(self, recorder: Recorder) -> Answer | None:
        """Host and GPUs now; the children now and then, since finding them costs more."""
        host = _rss("self")
        if host is not None:
            recorder.gauge("host_rss", host)
            if self._polls % CHILDREN_EVERY == 0:
                recorder.gauge("workers_rss", sum(_rss(pid) or 0 for pid in _descendants()))
        self._polls += 1
        devices = self._devices()
        if not devices:
            return None
        recorder.gauge("devices", devices)
        self._answer = ("yes", "" if self._utilisation.why is None else f"without utilisation: {self._utilisation.why}")
        return self._answer

    def _devices(self) -> list[Device]:
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        read = getattr(getattr(torch, "_C", None), "_cuda_memoryStats", None)
        if read is None or cuda is None or not hasattr(cuda, "is_initialized") or not cuda.is_initialized():
            return []
        devices = []
        for index in range(cuda.device_count()):
            stats = read(index)
            allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
            if reserved["peak"]:
                share = self._utilisation.of(cuda, index)
                devices.append(Device(index, allocated["current"], allocated["peak"], reserved["current"], share))
        return devices

    def uninstall(self) -> None:
        """Nothing was bound."""


class Utilisation:
    """How busy a GPU is, where the optional package for it is installed."""

    def __init__(self) -> None:
        self.why: str | None = None
        self._nvml: Any = None
        self._handles: dict[int, Any] = {}

    def of(self, cuda: Any, index: int) -> float | None:
        """A share between 0 and 1, or None; `why` then says why."""
        if self.why is not None:
            return None
        try:
            if self._nvml is None:
                self._nvml = __import__("pynvml")
                self._nvml.nvmlInit()
            if index not in self._handles:
                # By the device's own name: the job may see the GPUs in another order.
                name = f"GPU-{cuda.get_device_properties(index).uuid}"
                self._handles[index] = self._nvml.nvmlDeviceGetHandleByUUID(name)
            return float(self._nvml.nvmlDeviceGetUtilizationRates(self._handles[index]).gpu) / 100
        except Exception as error:  # noqa: BLE001 - the package has its own tree of errors; the capability table says which
            self.why = f"{type(error).__name__}: {error}"[:150]
            return None


def _rss(pid: int | str) -> int | None:
    """Resident bytes of a process; None if it is gone or cannot be seen."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _descendants() -> list[int]:
    """Children of this process and theirs: compile workers sit below a process of their own."""
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
