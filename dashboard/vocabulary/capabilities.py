"""Capability table: what each key means that agents and scrapers write into a capability table."""

from __future__ import annotations

LATENCY_OF = "latency of "
"""Begins the key of a region of an engine that is read from outside."""
CAPABILITY_MEANINGS = {
    "aot_compile": "calls of code that was compiled ahead of time by aot_compile",
    "aotinductor": "calls of AOTInductor packages, and how long a package takes to load",
    "autotune_cache": "kernels that were chosen by measuring, and whether a cache knew them",
    "cache_entries": "code that torch keeps without a graph, and eager work inside compiled code",
    "caches": "what the compile caches answered, and why a compilation was in no cache",
    "calls": "calls of watched functions, modules and regions",
    "command_signatures": "whether commands need a signature that no job can make",
    "compilations": "each compilation, how long it took and why",
    "compile_requests": "callables that the job asks torch to compile",
    "compiled_calls": "whether each call ran compiled",
    "components": "configuration of the process",
    "cuda_graph_partitions": "parts of a graph that run outside CUDA graphs, and why",
    "cuda_graph_recordings": "CUDA graphs that are recorded, and why one is recorded again",
    "cuda_graph_skips": "CUDA graphs that are skipped, and why",
    "eager_switches": "switches that make the whole process run eager",
    "errors": "calls that fail",
    "fallbacks": "operators without a compiled kernel",
    "generators": "generator functions that torch runs eager",
    "gpu_time": "time on the GPU",
    "guard_filters": "guards that the program leaves out",
    "guard_lookups": "calls by what torch's guards answered",
    "import_trace": "compilations, read from a TORCH_TRACE folder",
    "jax": "compilations of JAX, and whether its cache had them",
    "kernel_choices": "kernels that inductor chose for an operator",
    "late_hooks": "hooks that compiled code never calls",
    "latency": "how long calls take",
    "mega_cache": "caches that one process saves and another loads",
    "memory": "memory of the GPU and of the process, and how often it ran out",
    "precompiled_headers": "time that the first compilation spends on C++ headers",
    "recompile_limit": "frames that reach their recompile limit",
    "skipped_frames": "frames that torch leaves eager without a record",
    "spool": "windows kept on disk until they are sent",
    "switch": "commands that this job accepts from the dashboard",
    "torchscript": "calls of TorchScript functions, and their warm-up",
    "vllm_loads": "compilations that vLLM loads from its own cache",
}


def explain_capability(key: str) -> str:
    """The explanation of a key; empty for a key of an agent that is newer than this dashboard."""
    return (
        "how long calls of this part of the engine take"
        if key.startswith(LATENCY_OF)
        else CAPABILITY_MEANINGS.get(key, "")
    )
