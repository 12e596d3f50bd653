"""Says whether it can be seen which kernel inductor chose for an operator; `AutotuneCache` is where the choices come by."""

from __future__ import annotations

from compilewatch.recorder import Recorder
from compilewatch.sources import Answer, Source
from compilewatch.sources.torch_names import GEMM_CHOICES


class KernelChoices(Source):
    """The choices are told as components of the process."""

    name = "kernel_choices"
    module = "torch._inductor.codecache"

    def install(self, recorder: Recorder) -> Answer:
        problem = GEMM_CHOICES.problem()
        if problem:
            return "no", f"no choices of kernels: {problem}"
        return "partly", "of operators with several kernels, the one measured fastest; not the configurations within a Triton kernel"
