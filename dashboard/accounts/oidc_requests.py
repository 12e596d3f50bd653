"""HTTP session for the sign-in provider: bounded in time and bytes, without redirects."""

from __future__ import annotations

import time
from typing import Any

import requests

from dashboard.common.call_timeout import call_with_timeout

REQUEST_TIMEOUT_S = 5.0
MAX_RESPONSE_BYTES = 1 << 20
"""Maximum bytes of an answer. Discovery, keys and claims take a few KiB."""


class BoundedSession(requests.Session):  # type: ignore[misc]  # requests has no types
    """Session with a deadline for the whole answer.

    The timeout of requests applies to each single read. A provider that sends one byte at a time
    could therefore block a thread without end.
    """

    def request(
        self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any
    ) -> requests.Response:
        """Returns the whole answer. Raises RequestException for an answer that is late, too large
        or a redirect."""
        until = time.monotonic() + REQUEST_TIMEOUT_S
        kwargs |= {"timeout": REQUEST_TIMEOUT_S, "allow_redirects": False, "stream": True}
        kwargs["headers"] = {**(kwargs.get("headers") or {}), "Accept-Encoding": "identity"}
        ask = super().request

        def work() -> requests.Response:
            return _read_body(ask(method, url, *args, **kwargs), until)

        try:
            return call_with_timeout(work, seconds=REQUEST_TIMEOUT_S)
        except TimeoutError as error:
            raise requests.Timeout(
                f"no complete response within {REQUEST_TIMEOUT_S:.0f} s"
            ) from error


def _read_body(response: requests.Response, until: float) -> requests.Response:
    """Reads the body in pieces until the deadline, and returns the response with it."""
    with response:
        if response.is_redirect:
            raise requests.TooManyRedirects(
                "the provider redirects to another address; redirects are not followed, "
                "because they would receive the secret"
            )
        parts, size = [], 0
        while part := response.raw.read1(65536, decode_content=False):
            parts.append(part)
            size += len(part)
            if size > MAX_RESPONSE_BYTES:
                raise requests.exceptions.ContentDecodingError(
                    f"the response is longer than {MAX_RESPONSE_BYTES:,} bytes"
                )
            if time.monotonic() > until:
                raise requests.Timeout(f"no complete response within {REQUEST_TIMEOUT_S:.0f} s")
    response._content = b"".join(parts)  # requests keeps a body that was read here
    return response
