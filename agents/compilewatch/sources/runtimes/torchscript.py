"""TorchScript: its profiling executor runs a function slowly before it compiles it; those calls are warm-up."""

from __future__ import annotations

from compilewatch.instrument.torchscript_warm_up import profiled_runs, warmup_calls
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.torch_internals import PROFILED_RUNS
from compilewatch.sources import Answer, Source


class TorchScript(Source):
    """Binds nothing: what runs is seen by the calls that `watch` times."""

    name = "torchscript"
    module = "torch.jit"

    def install(self, recorder: Recorder) -> Answer:
        guess = (
            ""
            if profiled_runs() is not None
            else f", by guess: no {PROFILED_RUNS.costs} ({PROFILED_RUNS.short})"
        )
        return "partly", (
            f"the first {warmup_calls()} calls of a callable count as warm-up{guess}; "
            "torch does not tell when it compiles again for another shape"
        )
