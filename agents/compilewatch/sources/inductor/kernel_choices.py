"""Says whether it can be seen which kernel inductor chose for an operator; `AutotuneCache` is where the choices come by."""

from __future__ import annotations

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import GEMM_CHOICES
from compilewatch.sources import Answer, Source


class KernelChoices(Source):
    """The choices are told as components of the process."""

    name = "kernel_choices"
    module = "torch._inductor.codecache"

    def install(self, recorder: Recorder) -> Answer:
        problem = GEMM_CHOICES.problem()
        if problem:
            return "no", f"no choices of kernels: {problem}"
        return (
            "partly",
            "of operators with several kernels, the one measured fastest; not the configurations within a Triton kernel",
        )
