"""Capability table: the meaning of each key in the capability tables of agents and scrapers."""

from __future__ import annotations

LATENCY_OF = "latency of "
"""Prefix of the key of a region whose engine is scraped from outside."""
CAPABILITY_MEANINGS = {
    "aot_compile": "calls of code compiled ahead of time by aot_compile",
    "aotinductor": "calls of AOTInductor packages, and their load time",
    "autotune_cache": "kernels chosen by autotuning, and whether a cache had them",
    "cache_entries": "frames without a graph, and eager work inside compiled code",
    "caches": "results of compile cache lookups, and causes of misses",
    "calls": "calls of watched functions, modules and regions",
    "command_signatures": "whether commands need a signature, which jobs cannot create",
    "compilations": "each compilation with duration and cause",
    "compile_requests": "callables that the job passes to torch.compile",
    "compiled_calls": "whether each call ran compiled",
    "components": "configuration of the process",
    "cuda_graph_partitions": "parts of a graph that run outside CUDA graphs, with reasons",
    "cuda_graph_recordings": "CUDA graph recordings, with reasons for repeated ones",
    "cuda_graph_skips": "skipped CUDA graphs, with reasons",
    "eager_switches": "settings that make the whole process run eager",
    "errors": "failed calls",
    "fallbacks": "operators without a compiled kernel",
    "generators": "generator functions that torch runs eager",
    "gpu_time": "GPU time",
    "guard_filters": "guards that the program removes",
    "guard_lookups": "calls by the result of torch's guards",
    "import_trace": "compilations, read from a TORCH_TRACE folder",
    "jax": "JAX compilations, and whether the JAX cache had them",
    "kernel_choices": "kernels that inductor chose for an operator",
    "late_hooks": "hooks that compiled code skips",
    "latency": "call durations",
    "mega_cache": "caches saved by one process and loaded by another",
    "memory": "GPU and process memory, and out-of-memory errors",
    "precompiled_headers": "time that the first compilation spends on C++ headers",
    "recompile_limit": "frames that reached their recompile limit",
    "skipped_frames": "frames that torch silently runs eager",
    "spool": "reports kept on disk until sent",
    "switch": "commands that this job accepts from the dashboard",
    "torchscript": "calls of TorchScript functions, and their warm-up",
    "vllm_loads": "compilations that vLLM loads from its own cache",
}


def explain_capability(key: str) -> str:
    """The explanation of a key; empty for a key of an agent that is newer than this dashboard."""
    return (
        "call durations of this part of the engine"
        if key.startswith(LATENCY_OF)
        else CAPABILITY_MEANINGS.get(key, "")
    )
