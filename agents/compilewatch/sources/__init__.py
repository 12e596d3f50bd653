"""Source registry: the list of all sources of facts, and the protocol of a source.

A source observes one part of one library. The agent installs a source when the module that the
source patches is first imported."""

from __future__ import annotations

import importlib
from typing import Protocol

from compilewatch.recording.recorder import Recorder

Capability = tuple[str, str]
"""A capability: "yes", "partly" or "no", and the reason. Sources test for the names that they need
and never compare version numbers."""

SourceEntry = tuple[str, str, str]
"""Module and class of a source, its key in the capability table, and the module that it patches."""

SOURCES: tuple[SourceEntry, ...] = (
    ("dynamo.compilations:Compilations", "compilations", "torch._dynamo.utils"),
    ("inductor.cache_miss_reasons:CacheCapability", "caches", "torch._dynamo.utils"),
    ("inductor.autotune_cache:AutotuneCache", "autotune_cache", "torch._inductor.codecache"),
    ("inductor.kernel_choices:KernelChoices", "kernel_choices", "torch._inductor.codecache"),
    ("inductor.mega_cache:MegaCache", "mega_cache", "torch.compiler"),
    (
        "inductor.precompiled_headers:PrecompiledHeaders",
        "precompiled_headers",
        "torch._inductor.codecache",
    ),
    ("dynamo.recompile_limits:RecompileLimits", "recompile_limit", "torch._dynamo.convert_frame"),
    ("dynamo.skipped_frames:SkippedFrames", "skipped_frames", "torch._dynamo.convert_frame"),
    ("dynamo.cache_entries:CacheEntries", "cache_entries", "torch._dynamo.convert_frame"),
    ("dynamo.eager_stance:EagerStance", "eager_switches", "torch._dynamo.decorators"),
    ("dynamo.generator_functions:GeneratorFunctions", "generators", "torch._dynamo.eval_frame"),
    ("dynamo.guard_filters:GuardFilters", "guard_filters", "torch._dynamo.guards"),
    ("dynamo.late_hooks:LateHooks", "late_hooks", "torch._dynamo.utils"),
    ("inductor.operator_fallbacks:OperatorFallbacks", "fallbacks", "torch._inductor.graph"),
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
"""In the order of installation. Key and module are repeated here so that the code of a source is
loaded only when the source is installed."""


class Source(Protocol):
    """Base class of all sources. The registry counts each exception of a source as an internal
    error; no exception reaches the job."""

    name: str
    """Key of the source in the capability table."""
    module: str
    """Module whose first import installs the source. The agent never imports this module.
    Empty: the agent's thread installs the source."""

    def install(self, recorder: Recorder) -> Capability:
        """Patch the library and return the capability. Runs directly after the import of `module`,
        or immediately if `module` is already imported."""
        ...

    def poll(self, recorder: Recorder) -> Capability | None:
        """Update the source. The agent's thread calls this about once a second after `install`.
        Return the capability if it may have changed, otherwise None."""
        return None

    def uninstall(self) -> None:
        """Remove all patches that are still in place; also called after `install` raised."""


def load(entry: SourceEntry) -> Source:
    """Import and create the source of an entry of `SOURCES`."""
    module, name = entry[0].split(":")
    source: Source = getattr(importlib.import_module(f"compilewatch.sources.{module}"), name)()
    return source
