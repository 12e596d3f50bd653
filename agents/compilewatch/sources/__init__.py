"""Where facts come from: one source per origin, each installed when the module that it binds is first imported."""

from __future__ import annotations

import importlib
from typing import Protocol

from compilewatch.recording.recorder import Recorder

Answer = tuple[str, str]
"""A capability: "yes", "partly" or "no", and why; found by trying, never by a version number."""

Listed = tuple[str, str, str]
"""A source's module and class, its key in the capability table, and the module that it binds."""

SOURCES: tuple[Listed, ...] = (
    ("dynamo.compilations:Compilations", "compilations", "torch._dynamo.utils"),
    ("inductor.cache_miss_reasons:Caches", "caches", "torch._dynamo.utils"),
    ("inductor.autotune_cache:AutotuneCache", "autotune_cache", "torch._inductor.codecache"),
    ("inductor.kernel_choices:KernelChoices", "kernel_choices", "torch._inductor.codecache"),
    ("inductor.mega_cache:MegaCache", "mega_cache", "torch.compiler"),
    (
        "inductor.precompiled_headers:PrecompiledHeaders",
        "precompiled_headers",
        "torch._inductor.codecache",
    ),
    ("dynamo.recompile_limits:Limits", "recompile_limit", "torch._dynamo.convert_frame"),
    ("dynamo.skipped_frames:SkippedFrames", "skipped_frames", "torch._dynamo.convert_frame"),
    ("dynamo.cache_entries:CacheEntries", "cache_entries", "torch._dynamo.convert_frame"),
    ("dynamo.eager_stance:Switches", "eager_switches", "torch._dynamo.decorators"),
    ("dynamo.generator_functions:Generators", "generators", "torch._dynamo.eval_frame"),
    ("dynamo.guard_filters:GuardFilters", "guard_filters", "torch._dynamo.guards"),
    ("dynamo.late_hooks:LateHooks", "late_hooks", "torch._dynamo.utils"),
    ("inductor.operator_fallbacks:Fallbacks", "fallbacks", "torch._inductor.graph"),
    ("dynamo.guard_lookups:CompiledCalls", "compiled_calls", "torch._dynamo.eval_frame"),
    ("dynamo.compile_requests:CompileRequests", "compile_requests", "torch._dynamo.eval_frame"),
    ("cuda.graph_skips:CudaGraphs", "cuda_graph_skips", "torch._inductor.cudagraph_utils"),
    (
        "cuda.graph_skips:CudaGraphPartitions",
        "cuda_graph_partitions",
        "torch._inductor.output_code",
    ),
    (
        "cuda.graph_rerecords:CudaGraphRecordings",
        "cuda_graph_recordings",
        "torch._inductor.cudagraph_trees",
    ),
    ("cuda.gpu_time:GpuTime", "gpu_time", "torch.cuda"),
    ("runtimes.torchscript:TorchScript", "torchscript", "torch.jit"),
    ("runtimes.aotinductor:AotInductor", "aotinductor", "torch._inductor.package"),
    ("runtimes.aotinductor:AheadOfTime", "aot_compile", "torch._dynamo.aot_compile"),
    ("runtimes.jax:Jax", "jax", "jax"),
    ("runtimes.vllm_loads:VllmLoads", "vllm_loads", "vllm.compilation.decorators"),
    ("host.memory:Memory", "memory", ""),
)
"""In the order of installation. Name and module stand here too so that a source's code is loaded no sooner than it is needed."""


class Source(Protocol):
    """Inherit from it and override; whatever raises is counted as an internal error and never reaches the job."""

    name: str
    """The key of this source in the capability table."""
    module: str
    """The module whose first import installs the source, never imported for the source's sake; empty: the agent's thread installs it."""

    def install(self, recorder: Recorder) -> Answer:
        """Binds to torch and says what can be seen. Runs right after `module` was executed, or at once if it is there already."""
        ...

    def poll(self, recorder: Recorder) -> Answer | None:
        """Called about once a second on the agent's thread, from the installation on; answers when the capability changed."""
        return None

    def uninstall(self) -> None:
        """Takes back what is still ours; also called when `install` raised."""


def load(listed: Listed) -> Source:
    """The source that an entry of `SOURCES` names."""
    module, name = listed[0].split(":")
    source: Source = getattr(importlib.import_module(f"compilewatch.sources.{module}"), name)()
    return source
