"""vLLM's plugin: an engine that has this package installed starts the agent in each process that it creates."""

from __future__ import annotations

from compilewatch.agent import CLIENT, init
from compilewatch.config import endpoint_is_set
from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.fault_barrier import FaultBarrier


def vllm_plugin() -> None:
    """Called by vLLM in every process before it does any work, and in some more than once. Without an endpoint in the environment it does
    nothing; it never raises into the engine."""
    with FaultBarrier(RECORDER.internal_error):
        if endpoint_is_set() and CLIENT.recorder.config is None:
            init()
