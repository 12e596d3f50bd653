"""Metric names of vLLM and SGLang, from their public sources. Several names belong to several
releases."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class EngineHistogram:
    """A histogram of seconds with its possible names, and the region that it becomes."""

    region: str
    names: tuple[str, ...]
    outermost: bool = False


@dataclass(frozen=True)
class FinishedCounter:
    """A counter of finished requests by reason, and the reason that means a failure of the
    engine."""

    name: str
    label: str
    failed: str


@dataclass(frozen=True)
class FrontendHistogram:
    """The histogram of an engine's HTTP server, with finer buckets than the engine's own, and the
    counter of requests per `label`.

    Requests to `handlers` reach the model. If they are fewer than `least` of all requests, the
    times describe something else.
    """

    part: EngineHistogram
    by_handler: str
    label: str
    handlers: frozenset[str]
    least: float = 0.95


@dataclass(frozen=True)
class EngineFormat:
    """The metric names of one engine. All of its own names begin with `prefix`; the first part is a
    whole request."""

    engine: str
    prefix: str
    parts: tuple[EngineHistogram, ...]
    tokens: tuple[str, ...]
    finished: FinishedCounter | None = None
    front: FrontendHistogram | None = None
    started: str = "process_start_time_seconds"

    def select_parts(self, regions: Collection[str]) -> list[EngineHistogram]:
        """The parts whose regions an answer has. A request is counted once: as timed by the HTTP
        server, if known."""
        front = self.front.part if self.front and self.front.part.region in regions else None
        own = [part for part in self.parts if part.region in regions]
        return own if front is None else [front, *(replace(part, outermost=False) for part in own)]


VLLM_HANDLERS = frozenset(
    {
        *(
            "/v1/completions",
            "/v1/chat/completions",
            "/v1/responses",
            "/v1/messages",
            "/v1/embeddings",
            "/inference/v1/generate",
        ),
        *(
            "/v1/audio/transcriptions",
            "/v1/audio/translations",
            "/v1/score",
            "/v1/rerank",
            "/v2/rerank",
            "/score",
            "/rerank",
        ),
        *("/pooling", "/classify", "/invocations", "/generate"),
    }
)
"""Handlers that reach the model; lists of models, tokenizers, health and metrics do not."""
VLLM = EngineFormat(
    engine="vllm",
    prefix="vllm:",
    parts=(
        EngineHistogram("request", ("vllm:e2e_request_latency_seconds",), outermost=True),
        EngineHistogram("first token", ("vllm:time_to_first_token_seconds",)),
        EngineHistogram(
            "next token", ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
        ),
    ),
    tokens=("vllm:generation_tokens",),
    # Its source defines `error` as an internal error of the request, always answered with status
    # 500. `abort` is a client that disconnected. For releases without the reason, failures are
    # unknown.
    finished=FinishedCounter("vllm:request_success", "finished_reason", "error"),
    front=FrontendHistogram(
        part=EngineHistogram(
            "HTTP request", ("http_request_duration_highr_seconds",), outermost=True
        ),
        by_handler="http_request_duration_seconds",
        label="handler",
        handlers=VLLM_HANDLERS,
    ),
)
SGLANG = EngineFormat(
    engine="sglang",
    prefix="sglang:",
    parts=(
        EngineHistogram("request", ("sglang:e2e_request_latency_seconds",), outermost=True),
        EngineHistogram("first token", ("sglang:time_to_first_token_seconds",)),
        EngineHistogram(
            "next token",
            ("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
        ),
    ),
    tokens=("sglang:generation_tokens",),
)
FORMATS = {one.engine: one for one in (VLLM, SGLANG)}
