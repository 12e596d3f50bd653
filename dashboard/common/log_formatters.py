"""How log lines look: text or JSON, with the id of the request they belong to, and never with a
secret in them."""

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
    """The text with what must not be read in a log replaced: keys, Authorization, passwords in
    addresses, webhooks, links that let in."""
    for pattern, instead in _SECRET_PATTERNS:
        text = pattern.sub(instead, text)
    return text


class TextFormatter(logging.Formatter):
    """One line for people, with its traceback below."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        text, request = super().formatMessage(record), REQUEST_ID.get()
        return f"{text} [request {request}]" if request else text

    def format(self, record: logging.LogRecord) -> str:
        return redact_secrets(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a line; a traceback is a field of it."""

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
    """The server warns of the number of threads at each start; it was chosen, since most of them
    wait for the database."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "Python threads, which seems quite high" not in record.getMessage()


def set_request_id(told: str) -> str:
    """The id of the request that this thread answers from now on: the one that was sent with it, if
    it is a plain one."""
    known = told if _REQUEST_ID_PATTERN.fullmatch(told) else secrets.token_hex(8)
    REQUEST_ID.set(known)
    return known


class RequestIdMiddleware:
    """Middleware: a request has an id, that of the proxy in front if it sent a plain one; it stands
    in its log lines and its answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Django logs what was refused after every middleware: the id is forgotten when the answer
        is closed, or by the next request."""
        known = set_request_id(request.headers.get("X-Request-ID", ""))
        response = self._get_response(request)
        response["X-Request-ID"] = known
        return response


@receiver(request_finished)
def _clear_request_id(**_: object) -> None:
    REQUEST_ID.set("")
