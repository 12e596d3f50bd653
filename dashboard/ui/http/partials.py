"""Parts of pages that are fetched again: an ETag over what is said, so that an unchanged part costs
304 and no redraw."""

import hashlib
import json
import re
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

_RELATIVE_TIME = re.compile(r'(<time[^>]*data-t="ago"[^>]*>)[^<]*')


def fragment_etag(html: str) -> str:
    """The tag of a part; ages that the page's script keeps up to date do not count."""
    said = _RELATIVE_TIME.sub(r"\1", html)
    return f'"{hashlib.blake2b(said.encode(), digest_size=12).hexdigest()}"'


def fragment_response(request: HttpRequest, html: str) -> HttpResponse:
    """The part, or 304 when the page shows it already."""
    etag = fragment_etag(html)
    response = HttpResponse(status=304) if _has_etag(request, etag) else HttpResponse(html)
    response["ETag"] = etag
    return mark_uncached(response)


def respond_json(request: HttpRequest, content: dict[str, Any]) -> HttpResponse:
    """JSON with a tag over all of it, or 304 for who has it already."""
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
    """Whether the asker has this already; a tag that was sent with a compressed answer is marked as
    weak."""
    return request.headers.get("If-None-Match", "").removeprefix("W/") == etag


def mark_uncached(response: HttpResponse) -> HttpResponse:
    """Marks an answer as this person's own, and as different for a page and its part."""
    response["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["HX-Request", "Cookie"])
    return response
