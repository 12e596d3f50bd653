"""Log formatters: text or JSON, with the request ID and without secrets."""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime

from django.core.signals import request_finished
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
_REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._-]{8,64}", re.ASCII)

_SECRET_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(cw_(?:ing|api|dep|cmd)_[0-9A-Za-z]{8}_)[0-9A-Za-z]{8,}"), r"\1***"),
    (
        re.compile(
            r"(?i)\b(authorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token)\s+)?)[^\s'\",}]+"
        ),
        r"\1***",
    ),
    (re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}"), r"\1***"),
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://[^/\s:@]*:)[^@\s/]+@"), r"\1***@"),
    (re.compile(r"(https?://hooks\.[a-z.-]+/)[^\s'\"<>]+"), r"\1***"),
    (re.compile(r"(\bwhsec_)[A-Za-z0-9+/=_-]+"), r"\1***"),
    (re.compile(r"(/invitations/)[A-Za-z0-9_-]{16,}"), r"\1***"),
    (
        re.compile(
            r"(?i)((?:^|[?&])(?:code|state|token|key|secret|password|signature|sig|access_token)=)[^&\s'\"]+"
        ),
        r"\1***",
    ),
    (
        re.compile(
            r"(?i)(['\"]?(?:password|passwd|client_secret|secret_key|key_pepper|sessionid|csrftoken)['\"]?\s*[:=]\s*['\"]?)[^\s'\",;&}]+"
        ),
        r"\1***",
    ),
    (re.compile(r"((?:__Host-)?cw_(?:session|csrf)=)[^;\s'\"]+"), r"\1***"),
)


def redact_secrets(text: str) -> str:
    """Replaces secrets: keys, Authorization headers, passwords in URLs, webhooks, and links that
    grant access."""
    for pattern, instead in _SECRET_PATTERNS:
        text = pattern.sub(instead, text)
    return text


class TextFormatter(logging.Formatter):
    """One line of text, followed by its traceback."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        text, request = super().formatMessage(record), REQUEST_ID.get()
        return f"{text} [request {request}]" if request else text

    def format(self, record: logging.LogRecord) -> str:
        return redact_secrets(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object per line; a traceback is a field of the object."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact_secrets(record.getMessage()),
            "process": record.process,
        }
        if request := REQUEST_ID.get():
            line["request_id"] = request
        if reports := getattr(record, "reports", None):
            line["reports"] = reports
        if record.exc_info:
            line["error"] = redact_secrets(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


class ThreadCountFilter(logging.Filter):
    """Drops the server's warning about the number of threads. The number is deliberate: most
    threads wait for the database."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "Python threads, which seems quite high" not in record.getMessage()


def set_request_id(told: str) -> str:
    """Sets the ID of the request that this thread handles, and returns the ID. A received ID is
    used if it has a plain format."""
    known = told if _REQUEST_ID_PATTERN.fullmatch(told) else secrets.token_hex(8)
    REQUEST_ID.set(known)
    return known


class RequestIdMiddleware:
    """Middleware that gives each request an ID: the ID from the proxy if it has a plain format,
    else a random one. Log lines and the response contain the ID."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Keeps the ID after the response: Django logs refused requests after every middleware. The
        ID is cleared when the response is closed, or by the next request."""
        known = set_request_id(request.headers.get("X-Request-ID", ""))
        response = self._get_response(request)
        response["X-Request-ID"] = known
        return response


@receiver(request_finished)
def _clear_request_id(**_: object) -> None:
    REQUEST_ID.set("")
