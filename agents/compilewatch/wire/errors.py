"""Error answers: the one shape of all errors of the protocol, and every error code."""

from __future__ import annotations

from dataclasses import dataclass

ERROR_CODES = {
    "bad_request": (400, "the body is not a request of this protocol; the detail names the field"),
    "not_json": (400, "the body is not JSON"),
    "key_in_url": (400, "a key was sent in the URL; it belongs in the Authorization header"),
    "bad_key": (401, "the key is missing, unknown, revoked or expired"),
    "wrong_scope": (403, "the scope of the key does not allow this request"),
    "plain_http": (403, "reports over plain http are refused except on loopback"),
    "wrong_method": (405, "the endpoint accepts only POST"),
    "too_slow": (408, "the body arrived too slowly or paused for too long; nothing was stored"),
    "no_length": (411, "the request has no Content-Length"),
    "too_large": (413, "the body is larger than 1 MiB, or larger than 4 MiB after decompression"),
    "wrong_type": (415, "the body must be application/json, plain or gzip"),
    "wrong_version": (426, "this server accepts wire version 1"),
    "too_many": (
        429,
        "the project sends more reports than its quota allows, or too many of its reports wait "
        "for processing",
    ),
    "busy": (503, "the server cannot commit right now; the report was not stored"),
}


@dataclass(slots=True)
class Error:
    """Any answer that is not 200; a 4xx is final only if `cw` is present."""

    code: str
    detail: str
    cw: int = 1

    @property
    def status(self) -> int:
        """Returns the HTTP status of the code."""
        return ERROR_CODES[self.code][0]
