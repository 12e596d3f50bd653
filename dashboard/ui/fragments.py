"""Parts of pages that are fetched again: an ETag over what is said, so that an unchanged part costs 304 and no redraw."""

import hashlib
import re

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

_AGO = re.compile(r'(<time[^>]*data-t="ago"[^>]*>)[^<]*')


def fragment_etag(html: str) -> str:
    """The tag of a part; ages that the page's script keeps up to date do not count."""
    said = _AGO.sub(r"\1", html)
    return f'"{hashlib.blake2b(said.encode(), digest_size=12).hexdigest()}"'


def fragment_response(request: HttpRequest, html: str) -> HttpResponse:
    """The part, or 304 when the page shows it already."""
    etag = fragment_etag(html)
    known = request.headers.get("If-None-Match") == etag
    response = HttpResponse(status=304) if known else HttpResponse(html)
    response["ETag"] = etag
    return uncached(response)


def uncached(response: HttpResponse) -> HttpResponse:
    """Marks an answer as this person's own, and as different for a page and its part."""
    response["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["HX-Request", "Cookie"])
    return response
