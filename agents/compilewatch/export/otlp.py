"""Sends reports as OpenTelemetry metrics (OTLP over HTTP, JSON), to a collector or whoever else takes them; needs no package."""

from __future__ import annotations

import json

from compilewatch.export.transport import TEMPORARY, Answer, HttpTransport
from compilewatch.wire.ack import Ack
from compilewatch.wire.codec import decode
from compilewatch.wire.messages import Request
from compilewatch.wire.otlp import metrics_of

PATH = "/v1/metrics"
NOTHING_LOST = 1 << 53
"""Where numbers begin that were not delivered: who takes metrics says nothing of what it has lost."""


class OtlpTransport(HttpTransport):
    """Windows count as delivered once they were taken with a 2xx: OTLP names none of them."""

    def __init__(self, endpoint: str, api_key: str = "", proxy: str = "") -> None:
        super().__init__(endpoint, api_key, proxy, PATH)

    def send(self, body: bytes) -> Answer:
        """The same windows as metrics, each with the times it had."""
        request = decode(Request, json.loads(body))
        head, said = self.exchange(json.dumps(metrics_of(request), separators=(",", ":")).encode())
        answer = Answer(head.status, retry_after=head.headers.get("retry-after", ""))
        if 200 <= head.status < 300:
            answer.ack, answer.problem = (
                Ack([report.seq for report in request.reports], NOTHING_LOST),
                _partly(said),
            )
            return answer
        answer.final = 400 <= head.status < 500 and head.status not in TEMPORARY
        answer.code = f"http_{head.status}"
        answer.problem = f"HTTP {head.status} from who takes the metrics: {said[:200].decode('utf-8', 'replace')!r}"
        return answer


def _partly(said: bytes) -> str:
    """What was refused of what was taken."""
    try:
        found = json.loads(said or b"{}").get("partialSuccess") or {}
        return str(found.get("errorMessage", ""))[:300]
    except (ValueError, AttributeError, RecursionError):
        return ""
