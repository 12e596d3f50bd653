"""TorchScript: the profiling executor runs a function uncompiled first; those calls are warm-up."""

from __future__ import annotations

from compilewatch.instrument.torchscript_warm_up import profiled_runs, warmup_calls
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import PROFILED_RUNS
from compilewatch.sources import Capability, Source


class TorchScript(Source):
    """Reports the capability only: `watch` times the calls."""

    name = "torchscript"
    module = "torch.jit"

    def install(self, recorder: Recorder) -> Capability:
        guess = (
            ""
            if profiled_runs() is not None
            else f" (estimated: no {PROFILED_RUNS.lost_capability} [{PROFILED_RUNS.short_name}])"
        )
        return "partly", (
            f"the first {warmup_calls()} calls of a callable count as warm-up{guess}; "
            "torch does not report a recompile for another shape"
        )
