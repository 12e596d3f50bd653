"""OTLP exporter: sends reports as OpenTelemetry metrics (OTLP/HTTP, JSON) without the OpenTelemetry
SDK.
"""

from __future__ import annotations

import json

from compilewatch.export.transport import TEMPORARY_STATUSES, Answer, HttpTransport
from compilewatch.wire.ack import Ack
from compilewatch.wire.codec import decode
from compilewatch.wire.messages import Request
from compilewatch.wire.otlp import metrics_of

PATH = "/v1/metrics"
NO_MISSING_SEQ = 1 << 53
"""The `next_seq` of the acknowledgement that this exporter builds.

A collector does not report lost windows, so no window below this number counts as missing.
"""


class OtlpTransport(HttpTransport):
    """Windows count as delivered after any 2xx answer: OTLP acknowledges no single window."""

    def __init__(self, endpoint: str, api_key: str = "", proxy: str = "") -> None:
        super().__init__(endpoint, api_key, proxy, PATH)

    def send(self, body: bytes) -> Answer:
        """Sends the windows of the request as metrics, each with its own start and end time."""
        request = decode(Request, json.loads(body))
        metrics = json.dumps(metrics_of(request), separators=(",", ":")).encode()
        response = self.exchange(metrics)
        answer = Answer(response.status, retry_after=response.headers.get("retry-after", ""))
        if 200 <= response.status < 300:
            answer.ack, answer.problem = (
                Ack([report.seq for report in request.reports], NO_MISSING_SEQ),
                _partial_error(response.body),
            )
            return answer
        answer.final = 400 <= response.status < 500 and response.status not in TEMPORARY_STATUSES
        answer.code = f"http_{response.status}"
        text = response.body[:200].decode("utf-8", "replace")
        answer.problem = f"HTTP {response.status} from the metrics endpoint: {text!r}"
        return answer


def _partial_error(content: bytes) -> str:
    """Returns the collector's error message for a partial success; empty if there is none."""
    try:
        partial = json.loads(content or b"{}").get("partialSuccess") or {}
        return str(partial.get("errorMessage", ""))[:300]
    except (ValueError, AttributeError, RecursionError):
        return ""
