"""vLLM plugin: an engine with this package installed starts the agent in each of its processes."""

from __future__ import annotations

from compilewatch.agent import AGENT, init
from compilewatch.config import is_endpoint_set
from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.fault_barrier import FaultBarrier


def vllm_plugin() -> None:
    """Starts the agent; does nothing without an endpoint in the environment.

    vLLM calls this function in every process before any work, and in some processes more than once.
    The function never raises into the engine."""
    with FaultBarrier(RECORDER.record_internal_error):
        if is_endpoint_set() and AGENT.recorder.config is None:
            init()
