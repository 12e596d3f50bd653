"""NVML: GPU utilisation, if the optional package is installed."""

from __future__ import annotations

import importlib
from typing import Any

MISSING = "nvidia-ml-py is not installed: pip install compilewatch[nvml]"


class GpuUtilisation:
    """Imports the package at the first read, on the agent's thread, after CUDA has started."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self._nvml: Any = None
        self._handles: dict[int, Any] = {}

    def share_of(self, cuda: Any, index: int) -> float | None:
        """Utilisation between 0 and 1, or None with the reason in `problem`."""
        if self.problem is not None:
            return None
        try:
            if self._nvml is None:
                self._nvml = importlib.import_module("pynvml")
                self._nvml.nvmlInit()
            if index not in self._handles:
                # By UUID: the job may number the GPUs differently.
                name = f"GPU-{cuda.get_device_properties(index).uuid}"
                self._handles[index] = self._nvml.nvmlDeviceGetHandleByUUID(name)
            return float(self._nvml.nvmlDeviceGetUtilizationRates(self._handles[index]).gpu) / 100
        except ImportError:
            self.problem = MISSING
        except Exception as error:  # noqa: BLE001 - the package's own errors
            self.problem = f"{type(error).__name__}: {error}"[:150]
        return None
