"""What a request must be before its body is read: method, transport, key, length, type; then the body itself."""

from __future__ import annotations

from ipaddress import ip_address

from compilewatch.wire.report import MAX_WIRE_BYTES
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest

from dashboard.ingest.body import Refused, inflate
from dashboard.projects.keycheck import KnownKey, key_check
from dashboard.projects.keys import KEY_ANYWHERE
from dashboard.projects.services import key_exposed

MAX_HEADER_KEY = 256


def method_check(request: HttpRequest) -> None:
    """Only POST, and only to a name that is ours."""
    if request.method != "POST":
        raise Refused("wrong_method", "This address takes POST.")
    try:
        request.get_host()
    except DisallowedHost:
        raise Refused("bad_request", "The Host header names no host of this server.") from None


def key_require(request: HttpRequest) -> KnownKey:
    """The key that may send reports; one in the URL or over plain http is marked as exposed."""
    _refuse_key_in_url(request)
    scheme, _, text = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    known = key_check(text) if scheme.lower() == "bearer" and len(text) <= MAX_HEADER_KEY else None
    if not _transport_is_safe(request):
        if known is not None:
            key_exposed(key_id=known.id, where="plain http", address=_address(request))
        raise Refused("plain_http", "Reports over plain http are refused except on loopback; use https.")
    if known is None:
        raise Refused("bad_key", "The key is missing, mistyped, unknown, revoked or expired.")
    if known.kind != "ing":
        raise Refused("wrong_scope", "This key reads; sending reports takes a key that begins with cw_ing_.")
    return known


def _refuse_key_in_url(request: HttpRequest) -> None:
    found = KEY_ANYWHERE.search(request.META.get("QUERY_STRING", ""))
    if found is None:
        return
    known = key_check(found[0])
    if known is not None:
        key_exposed(key_id=known.id, where="URL", address=_address(request))
    raise Refused("key_in_url", "A key was sent in the URL; it belongs in the Authorization header. Revoke it: URLs are logged.")


def _transport_is_safe(request: HttpRequest) -> bool:
    if request.is_secure() or settings.ALLOW_HTTP:
        return True
    came_through_a_proxy = any(name in request.META for name in ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_FORWARDED"))
    address = _address(request)
    return not came_through_a_proxy and address is not None and ip_address(address).is_loopback


def _address(request: HttpRequest) -> str | None:
    text: str = request.META.get("REMOTE_ADDR", "")
    try:
        return str(ip_address(text))
    except ValueError:
        return None


def head_check(request: HttpRequest) -> int:
    """The length of the body, if it may be read at all."""
    text: str = request.META.get("CONTENT_LENGTH") or ""
    if not text:
        raise Refused("no_length", "The request has no Content-Length.")
    if not text.isascii() or not text.isdecimal():
        raise Refused("bad_request", "Content-Length is not a number.")
    if len(text) > 12 or int(text) > MAX_WIRE_BYTES:
        raise Refused("too_large", f"The body is larger than {MAX_WIRE_BYTES} bytes.")
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    if request.content_type != "application/json" or charset not in ("utf-8", "utf8"):
        raise Refused("wrong_type", "Content-Type must be application/json in UTF-8.")
    if _encoding(request) not in ("", "identity", "gzip"):
        raise Refused("wrong_type", "Content-Encoding must be gzip or absent.")
    return int(text)


def body_read(request: HttpRequest, length: int) -> bytes:
    """The JSON text in the body."""
    try:
        body: bytes = request.META["wsgi.input"].read(length)
    except OSError:
        body = b""
    if len(body) != length or not body:
        raise Refused("bad_request", f"The body is {len(body)} bytes long, Content-Length says {length}.")
    return inflate(body) if _encoding(request) == "gzip" else body


def _encoding(request: HttpRequest) -> str:
    text: str = request.META.get("HTTP_CONTENT_ENCODING", "")
    return text.strip().lower()
