"""Recorded responses of a vLLM on a CPU, and their true values, read from the text without the code
of the product."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.architecture.tree import REPOSITORY

SAMPLES = REPOSITORY / "tests/data/engines"
OWN, FRONT = "vllm:e2e_request_latency_seconds", "http_request_duration_highr_seconds"
_COUNTED = re.compile(r"^(\S+?(?:_bucket|_count|_sum|_total)(?:\{.*\})?) (\S+)$", re.MULTILINE)


def answer(
    name: str, *, times: float = 1, front: bool = True, started: float = 0.0, slow: bool = False
) -> str:
    """A recorded response with all counters multiplied by `times`. Without `front`, the HTTP server
    has no metrics. With `slow`, the first bucket of the engine's histogram is empty, and the next
    bucket contains those calls."""
    text = (SAMPLES / f"vllm-http-{name}.txt").read_text()
    text = re.sub(
        r"^process_start_time_seconds \S+$",
        f"process_start_time_seconds {started}",
        text,
        flags=re.MULTILINE,
    )
    kept = (
        text
        if front
        else "\n".join(line for line in text.splitlines() if "http_request" not in line) + "\n"
    )
    if slow:
        kept = re.sub(rf'^({OWN}_bucket.*le="0.3".*) \S+$', r"\1 0.0", kept, flags=re.MULTILINE)
    return _COUNTED.sub(lambda found: f"{found[1]} {float(found[2]) * times}", kept)


@dataclass(frozen=True)
class Truth:
    """A histogram as written in the text."""

    upto: list[tuple[float, float]]
    count: float
    mean: float

    def bucket(self, q: float) -> tuple[float, float]:
        """The bounds of the bucket that contains the quantile."""
        place = next(place for place, (_, count) in enumerate(self.upto) if count >= q * self.count)
        return (self.upto[place - 1][0] if place else 0.0), self.upto[place][0]


def truth(name: str, family: str) -> Truth:
    """One histogram of a recorded response."""
    text = (SAMPLES / f"vllm-http-{name}.txt").read_text()
    pairs = re.findall(rf'^{family}_bucket{{.*?le="([^"]+)".*?}} (\S+)$', text, re.MULTILINE)
    [count] = re.findall(rf"^{family}_count\S* (\S+)$", text, re.MULTILINE)
    [total] = re.findall(rf"^{family}_sum\S* (\S+)$", text, re.MULTILINE)
    return Truth(
        [(float(le), float(upto)) for le, upto in pairs], float(count), float(total) / float(count)
    )
