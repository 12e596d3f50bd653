"""Memory of torch's allocator on each GPU, of the process and of its compile workers.

Out-of-memory errors and allocation retries are counted too."""

from __future__ import annotations

import time
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import CUDA, CUDA_MEMORY, CUDA_STARTED
from compilewatch.sources import Capability, Source
from compilewatch.sources.cuda.graph_pools import GraphPools
from compilewatch.sources.cuda.nvml import GpuUtilisation
from compilewatch.sources.host.rss import rss_bytes, workers_rss_bytes
from compilewatch.sources.host.theil_sen import Slope
from compilewatch.wire.messages import Device

WORKER_POLL_INTERVAL = 5
"""Polls between two searches for compile workers, which cost more than the other readings."""


class Memory(Source):
    """Reads memory once a second on the agent's thread; never starts CUDA or resets a peak."""

    name = "memory"
    module = ""

    def __init__(self) -> None:
        self._polls = 0
        self._utilisation = GpuUtilisation()
        self._slope = Slope()
        self._shortages = Shortages()
        self._pools = GraphPools()
        self._blind = ""

    def install(self, recorder: Recorder) -> Capability:
        return (
            ("partly", "the host only: the job has not started CUDA")
            if rss_bytes("self") is not None
            else ("no", "no /proc here")
        )

    def poll(self, recorder: Recorder) -> Capability | None:
        """Reads host and GPUs each time, and compile workers every `WORKER_POLL_INTERVAL` polls."""
        host = rss_bytes("self")
        if host is not None:
            recorder.set_gauge("host_rss", host)
            self._slope.add(time.monotonic(), host)
            recorder.set_gauge("host_rss_slope", self._slope.per_hour)
            if self._polls % WORKER_POLL_INTERVAL == 0:
                recorder.set_gauge("workers_rss", workers_rss_bytes())
        self._polls += 1
        devices = self._devices(recorder)
        if not devices:
            blind = self._blind or CUDA_MEMORY.problem()
            return (
                ("partly", f"the host only, no {CUDA_MEMORY.lost_capability}: {blind}")
                if blind
                else None
            )
        recorder.set_gauge("devices", devices)
        missing = {
            "utilisation": self._utilisation.problem,
            "the pool of CUDA graphs": self._pools.problem,
        }
        return "yes", "; ".join(f"without {what}: {why}" for what, why in missing.items() if why)

    def _devices(self, recorder: Recorder) -> list[Device]:
        cuda = CUDA.find()
        if cuda is None or CUDA_STARTED.call(False) is not True:
            return []
        devices = []
        for index in range(cuda.device_count()):
            stats = CUDA_MEMORY.call(None, index)
            if not isinstance(stats, dict):
                self._blind = (
                    CUDA_MEMORY.problem() or f"{CUDA_MEMORY.short_name} is called in an unknown way"
                )
                return []
            allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
            self._shortages.report(recorder, index, stats)
            if reserved["peak"]:
                share, pool = (
                    self._utilisation.share_of(cuda, index),
                    self._pools.size_of(cuda, index),
                )
                devices.append(
                    Device(
                        index,
                        allocated["current"],
                        allocated["peak"],
                        reserved["current"],
                        share,
                        pool,
                    )
                )
        return devices

    def uninstall(self) -> None:
        """Does nothing: this source patches nothing."""


class Shortages:
    """Counts of out-of-memory errors and allocation retries, from torch's counts per device.

    A retry means that the allocator freed its cache before it could continue."""

    def __init__(self) -> None:
        self._last_counts: dict[tuple[int, str], int] = {}

    def report(self, recorder: Recorder, index: int, stats: dict[str, Any]) -> None:
        """Reports the counts since the last reading."""
        failed, retried = (
            self._count_since_last(index, "num_ooms", stats),
            self._count_since_last(index, "num_alloc_retries", stats),
        )
        if failed:
            recorder.record_fact(
                "oom", {"text": f"out of memory on GPU {index}", "device": index, "count": failed}
            )
        if retried:
            text = f"GPU {index} was full: the allocator gave its cache back and tried again"
            recorder.record_finding("alloc_retry", text, "", retried)

    def _count_since_last(self, index: int, name: str, stats: dict[str, Any]) -> int:
        now = stats.get(name)
        if not isinstance(now, int):
            return 0
        before, self._last_counts[index, name] = self._last_counts.get((index, name), 0), now
        # A smaller count means that the job reset its statistics: the present count is all new.
        return now - before if now >= before else now
