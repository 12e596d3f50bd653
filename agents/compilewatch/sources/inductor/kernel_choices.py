"""Capability of kernel choices; `AutotuneCache` observes the choices themselves."""

from __future__ import annotations

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import GEMM_CHOICES
from compilewatch.sources import Capability, Source


class KernelChoices(Source):
    """Reports whether kernel choices are visible. The choices are components of the process."""

    name = "kernel_choices"
    module = "torch._inductor.codecache"

    def install(self, recorder: Recorder) -> Capability:
        problem = GEMM_CHOICES.problem()
        if problem:
            return "no", f"no kernel choices: {problem}"
        return (
            "partly",
            "only the fastest kernel of an operator that has several, "
            "not the configurations within a Triton kernel",
        )
