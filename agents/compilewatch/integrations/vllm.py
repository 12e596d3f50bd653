"""vLLM's plugin: an engine that has this package installed starts the agent in each process that it creates."""

from __future__ import annotations

from compilewatch.agent import AGENT, init
from compilewatch.config import is_endpoint_set
from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.fault_barrier import FaultBarrier


def vllm_plugin() -> None:
    """Called by vLLM in every process before it does any work, and in some more than once. Without an endpoint in the environment it does
    nothing; it never raises into the engine."""
    with FaultBarrier(RECORDER.record_internal_error):
        if is_endpoint_set() and AGENT.recorder.config is None:
            init()
