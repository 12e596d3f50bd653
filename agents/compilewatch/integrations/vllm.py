"""vLLM's plugin: an engine that has this package installed starts the agent in each process that it creates."""

from __future__ import annotations

from compilewatch.agent import CLIENT, init
from compilewatch.config import endpoint_is_set
from compilewatch.runtime.fault_barrier import Guard


def vllm_plugin() -> None:
    """Called by vLLM in every process before it does any work, and in some more than once. Without an endpoint in the environment it does
    nothing; it never raises into the engine."""
    with Guard():
        if endpoint_is_set() and CLIENT.config is None:
            init()
