"""Page parts that scripts poll: an ETag of the content, so that an unchanged part costs a 304 and
no redraw."""

import hashlib
import json
import re
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

_RELATIVE_TIME = re.compile(r'(<time[^>]*data-t="ago"[^>]*>)[^<]*')


def fragment_etag(html: str) -> str:
    """ETag of a part. It ignores relative times, which the page's script keeps up to date."""
    said = _RELATIVE_TIME.sub(r"\1", html)
    return f'"{hashlib.blake2b(said.encode(), digest_size=12).hexdigest()}"'


def fragment_response(request: HttpRequest, html: str) -> HttpResponse:
    """Returns the part, or 304 if the page already shows it."""
    etag = fragment_etag(html)
    response = HttpResponse(status=304) if _has_etag(request, etag) else HttpResponse(html)
    response["ETag"] = etag
    return mark_uncached(response)


def respond_json(request: HttpRequest, content: dict[str, Any]) -> HttpResponse:
    """Returns JSON with an ETag of its content, or 304 if the client already has it."""
    body = json.dumps(content, cls=DjangoJSONEncoder, separators=(",", ":"))
    etag = f'"{hashlib.blake2b(body.encode(), digest_size=12).hexdigest()}"'
    response = (
        HttpResponse(status=304)
        if _has_etag(request, etag)
        else HttpResponse(body, content_type="application/json")
    )
    response["ETag"] = etag
    return mark_uncached(response)


def _has_etag(request: HttpRequest, etag: str) -> bool:
    """True if the client already has this version. An ETag that was sent with a compressed response
    is marked as weak."""
    return request.headers.get("If-None-Match", "").removeprefix("W/") == etag


def mark_uncached(response: HttpResponse) -> HttpResponse:
    """Marks a response as private to this person, and as different for the page and its part."""
    response["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["HX-Request", "Cookie"])
    return response
