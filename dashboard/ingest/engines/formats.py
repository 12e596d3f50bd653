"""Which names vLLM and SGLang give their metrics, by their public sources; several names are of several releases."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A histogram of seconds, under any of these names, and the region that it becomes."""

    region: str
    names: tuple[str, ...]
    outermost: bool = False


@dataclass(frozen=True)
class Finished:
    """A counter of finished requests by reason, and the reason that says that the engine itself could not finish one."""

    name: str
    label: str
    failed: str


@dataclass(frozen=True)
class Format:
    """What an engine calls things. `prefix` is what all its own names begin with; the first part is a request as a whole."""

    engine: str
    prefix: str
    parts: tuple[Part, ...]
    tokens: tuple[str, ...]
    finished: Finished | None = None
    started: str = "process_start_time_seconds"


VLLM = Format(
    engine="vllm",
    prefix="vllm:",
    parts=(
        Part("request", ("vllm:e2e_request_latency_seconds",), outermost=True),
        Part("first token", ("vllm:time_to_first_token_seconds",)),
        Part("next token", ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")),
    ),
    tokens=("vllm:generation_tokens",),
    # Its source calls `error` an internal error of the request that is always answered with status 500; `abort` is a client that left.
    # Of releases that do not know the reason nothing can be said.
    finished=Finished("vllm:request_success", "finished_reason", "error"),
)
SGLANG = Format(
    engine="sglang",
    prefix="sglang:",
    parts=(
        Part("request", ("sglang:e2e_request_latency_seconds",), outermost=True),
        Part("first token", ("sglang:time_to_first_token_seconds",)),
        Part("next token", ("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds")),
    ),
    tokens=("sglang:generation_tokens",),
)
FORMATS = {one.engine: one for one in (VLLM, SGLANG)}
