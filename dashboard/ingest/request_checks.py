"""Request checks: method, transport, key, length and type before the body is read, then the
body."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote

from compilewatch.wire.messages import MAX_WIRE_BYTES
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import parse_header_parameters

from dashboard.common.client_address import find_client_address, normalize_address
from dashboard.ingest.body_decoder import RefusalError, inflate
from dashboard.projects.key_auth import VerifiedKey, key_check, key_recall
from dashboard.projects.key_format import KEY_SEARCH_PATTERN
from dashboard.projects.services import key_record_exposure

MAX_HEADER_KEY = 256

Environ = dict[str, Any]
"""A request as WSGI passes it."""


def method_check(environ: Environ) -> None:
    """Accepts only POST, and only to a host name of this server."""
    if environ["REQUEST_METHOD"] != "POST":
        raise RefusalError("wrong_method", "This address accepts only POST.")
    if not _is_our_host(
        str(environ.get("HTTP_HOST", environ.get("SERVER_NAME", ""))), tuple(settings.ALLOWED_HOSTS)
    ):
        raise RefusalError(
            "bad_request", "The Host header names no host of this server; check COMPILEWATCH_HOSTS."
        )


@lru_cache(maxsize=256)
def _is_our_host(host: str, allowed: tuple[str, ...]) -> bool:
    """True if the Host header names this server. Agents send the same header thousands of times a
    second."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, allowed)


def key_require(environ: Environ, kind: str = "ing") -> VerifiedKey:
    """The verified key, if it is of this kind (`projects.keys.KINDS`). A key in the URL or over
    plain HTTP is marked as exposed."""
    _refuse_key_in_url(environ)
    text = _read_key_text(environ)
    known = key_check(text) if text else None
    if not _transport_is_safe(environ):
        if known is not None:
            key_record_exposure(
                key_id=known.id, where="plain http", address=find_client_address(environ)
            )
        raise RefusalError(
            "plain_http", "Keys over plain http are refused except on loopback; use https."
        )
    if known is None:
        raise RefusalError("bad_key", "The key is missing, mistyped, unknown, revoked or expired.")
    if known.kind != kind:
        raise RefusalError(
            "wrong_scope",
            f"Expected a key that begins with cw_{kind}_, got one of another kind.",
        )
    return known


def find_cached_key(environ: Environ) -> VerifiedKey | None:
    """The key, if it was verified recently; does not query the database."""
    text = _read_key_text(environ)
    return key_recall(text) if text else None


def _read_key_text(environ: Environ) -> str:
    """The key in the header; empty if it cannot be a key."""
    scheme, _, text = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    return text if scheme.lower() == "bearer" and len(text) <= MAX_HEADER_KEY else ""


def _refuse_key_in_url(environ: Environ) -> None:
    found = KEY_SEARCH_PATTERN.search(
        _unquote_twice(f"{environ.get('PATH_INFO', '')}?{environ.get('QUERY_STRING', '')}")
    )
    if found is None:
        return
    known = key_check(found[0])
    if known is not None:
        key_record_exposure(key_id=known.id, where="URL", address=find_client_address(environ))
    raise RefusalError(
        "key_in_url",
        "A key was sent in the URL; it belongs in the Authorization header. Revoke it: "
        "URLs are logged.",
    )


def _unquote_twice(address: str) -> str:
    """The address without percent escapes, even where a client quoted it twice: logs expose the key
    either way."""
    for _ in range(2):
        address = unquote(address) if "%" in address else address
    return address


def _transport_is_safe(environ: Environ) -> bool:
    if settings.ALLOW_HTTP or _is_secure(environ):
        return True
    came_through_a_proxy = any(
        name in environ
        for name in ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_FORWARDED")
    )
    return not came_through_a_proxy and _is_loopback(environ.get("REMOTE_ADDR", ""))


@lru_cache(maxsize=256)
def _is_loopback(text: str) -> bool:
    found = normalize_address(text)
    return found is not None and ip_address(found).is_loopback


def _is_secure(environ: Environ) -> bool:
    """True if the request is secure, by Django's rules: the header of a trusted proxy, or else the
    scheme of the connection."""
    if settings.SECURE_PROXY_SSL_HEADER:
        header, value = settings.SECURE_PROXY_SSL_HEADER
        if header in environ:
            return str(environ[header]).split(",", 1)[0].strip() == value
    return bool(environ.get("wsgi.url_scheme") == "https")


def head_check(environ: Environ, kind: str = "application/json") -> int:
    """The length of the body. Raises RefusalError if the body must not be read."""
    text: str = environ.get("CONTENT_LENGTH") or ""
    if not text:
        raise RefusalError("no_length", "The request has no Content-Length.")
    if not text.isascii() or not text.isdecimal():
        raise RefusalError("bad_request", "Content-Length is not a number.")
    if len(text) > 12 or int(text) > MAX_WIRE_BYTES:
        raise RefusalError("too_large", f"The body is larger than {MAX_WIRE_BYTES} bytes.")
    if not _is_content_type(kind, environ.get("CONTENT_TYPE", "")):
        raise RefusalError(
            "wrong_type",
            f"Content-Type must be {kind}{' in UTF-8' if kind.endswith('json') else ''}.",
        )
    if _read_encoding(environ) not in ("", "identity", "gzip"):
        raise RefusalError("wrong_type", "Content-Encoding must be gzip or absent.")
    return int(text)


def _is_content_type(wanted: str, content_type: str) -> bool:
    if content_type == wanted:
        return True
    try:
        kind, parameters = parse_header_parameters(content_type)
    except ValueError:
        return False
    return kind == wanted and parameters.get("charset", "utf-8").lower() in ("utf-8", "utf8")


def body_read(environ: Environ, length: int) -> bytes:
    """The JSON text in the body."""
    try:
        body: bytes = environ["wsgi.input"].read(length)
    except OSError:
        body = b""
    if len(body) != length or not body:
        raise RefusalError(
            "bad_request", f"The body is {len(body)} bytes long, but Content-Length is {length}."
        )
    return inflate(body) if _read_encoding(environ) == "gzip" else body


def _read_encoding(environ: Environ) -> str:
    text: str = environ.get("HTTP_CONTENT_ENCODING", "")
    return text.strip().lower()
