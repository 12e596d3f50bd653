"""Static files: compressed once, cached in the process, and sent with an ETag of their content."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import re_accepts_gzip
from django.utils.cache import get_conditional_response
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]

TEXT_TYPES = ("text/css", "text/javascript", "application/javascript", "image/svg+xml")
HEADERS = {
    # URLs contain no version, so browsers revalidate after an upgrade; unchanged files cost a
    # response without a body.
    "Cache-Control": "max-age=60, public",
    "Access-Control-Allow-Origin": "*",
    "Content-Encoding": "gzip",
    "Vary": "Accept-Encoding",
}


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # whitenoise has no types
    """Sends compressed text from memory to clients that accept gzip; WhiteNoise sends everything
    else, and all files in development."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        super().__init__(get_response)
        files = {} if self.autorefresh else self.files
        paths = {url: file.alternatives[-1][1] for url, file in files.items()}
        self._text = {
            url: path for url, path in paths.items() if mimetypes.guess_type(path)[0] in TEXT_TYPES
        }

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Passes requests for other paths to the rest of the dashboard."""
        path = self._text.get(request.path_info)
        accepted = re_accepts_gzip.search(request.headers.get("Accept-Encoding", ""))
        if path and accepted and request.method in ("GET", "HEAD"):
            return _answer(request, path)
        answer: HttpResponseBase = super().__call__(request)
        return answer


def _answer(request: HttpRequest, path: str) -> HttpResponseBase:
    body, tag, kind = _load_compressed(path)
    answer = HttpResponse(b"" if request.method == "HEAD" else body, kind, headers=HEADERS)
    answer["ETag"], answer["Content-Length"] = tag, str(len(body))
    return get_conditional_response(request, etag=tag, response=answer) or answer


@cache
def _load_compressed(path: str) -> tuple[bytes, str, str]:
    """The compressed body, its ETag and its type. All cached files together have the size of the
    installed files, about 3 MB."""
    content, kind = Path(path).read_bytes(), mimetypes.guess_type(path)[0]
    tag = hashlib.sha256(content).hexdigest()[:20]
    return gzip.compress(content, 9, mtime=0), f'"{tag}-gzip"', f"{kind}; charset=utf-8"
