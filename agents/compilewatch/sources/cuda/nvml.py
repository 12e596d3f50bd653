"""How busy a GPU is: asked of NVML, where the optional package for it is installed."""

from __future__ import annotations

import importlib
from typing import Any

MISSING = "nvidia-ml-py is not installed: pip install compilewatch[nvml]"


class Utilisation:
    """Loads the package at the first question, which the agent's thread asks once the job has started CUDA."""

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
                self._nvml = importlib.import_module("pynvml")
                self._nvml.nvmlInit()
            if index not in self._handles:
                # By the device's own name: the job may see the GPUs in another order.
                name = f"GPU-{cuda.get_device_properties(index).uuid}"
                self._handles[index] = self._nvml.nvmlDeviceGetHandleByUUID(name)
            return float(self._nvml.nvmlDeviceGetUtilizationRates(self._handles[index]).gpu) / 100
        except ImportError:
            self.why = MISSING
        except Exception as error:  # noqa: BLE001 - the package has its own tree of errors; the capability table says which
            self.why = f"{type(error).__name__}: {error}"[:150]
        return None
